// Tests kernel PCA of a randomized Gram matrix, and kernel PCA with rounded weights.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/random/random_stream.h"
#include "core/status/error.h"
#include "core/theory/gram_bounds.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr char kRandomizedKernel[] = "rbf(gamma=0.2)";
constexpr GramRandomization kRandomizations[] = {
    {.sparsify = 4}, {.quantise = true}, {.sparsify = 4, .quantise = true}};

// Returns points around `clusters` centres that are far from each other. Each cluster has fewer
// points than the one before. So the kernel matrix K has `clusters` large eigenvalues, which are
// far from each other and from the other eigenvalues.
Matrix<double> Clusters(int64_t rows, int64_t clusters, int64_t cols) {
  Matrix<double> x = NormalRows({.rows = rows, .cols = cols, .seed = 31});
  const Matrix<double> centres = NormalRows({.rows = clusters, .cols = cols, .seed = 32});
  for (int64_t i = 0; i < rows; ++i) {
    // Squares of uniform numbers make the later clusters smaller.
    const double u = static_cast<double>(i) / static_cast<double>(rows);
    const auto cluster = static_cast<int64_t>(static_cast<double>(clusters) * u * u);
    for (int64_t k = 0; k < cols; ++k) x(i, k) = 10 * centres(cluster, k) + 0.2 * x(i, k);
  }
  return x;
}

LandmarkTask TaskOf(const Matrix<double>& landmarks) {
  UseOneBlasThread();
  return {.kernel = MustParseKernel(kRandomizedKernel),
          .input = {.columns = landmarks.cols()},
          .landmarks = landmarks.view(),
          .serving_type = FloatType::kFloat64};
}

// Returns K(S, S) for the landmarks S, centred if `centred` is true.
Matrix<double> GramOf(const Matrix<double>& landmarks, bool centred) {
  Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kRandomizedKernel), landmarks, landmarks);
  if (!centred) return k;
  const int64_t m = k.rows();
  std::vector<double> means(m);
  double mean = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < m; ++j) means[i] += k(i, j) / static_cast<double>(m);
    mean += means[i] / static_cast<double>(m);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < m; ++j) k(i, j) += mean - means[i] - means[j];
  }
  return k;
}

// Returns the unit expansions α_n of a float64 plan that has a weight for every landmark.
Matrix<double> ExpansionsOf(const KernelPca& pca) {
  const Matrix<double>& w =
      std::get<DenseProjection<double>>(std::get<1>(pca.served.stages).projection).matrix;
  Matrix<double> alpha(w.cols(), w.rows());
  for (int64_t n = 0; n < w.cols(); ++n) {
    for (int64_t i = 0; i < w.rows(); ++i) {
      alpha(n, i) = w(i, n) * std::sqrt(pca.eigenvalues[n]);
    }
  }
  return alpha;
}

// Returns ‖F̂ᵀF_⊥‖, the sine of an angle between two spaces. F̂ is spanned by the orthonormal rows
// of `alpha`. F_⊥ is spanned by those eigenvectors of K whose eigenvalues are below `bound`. The
// rows of `vectors` are K's eigenvectors, and `rising` contains their eigenvalues in rising order.
double SineOf(const Matrix<double>& alpha, const Matrix<double>& vectors,
              const std::vector<double>& rising, double bound) {
  const auto below =
      static_cast<int64_t>(std::lower_bound(rising.begin(), rising.end(), bound) - rising.begin());
  Matrix<double> products(alpha.rows(), below);
  MultiplyTransposed(1, alpha.view(), vectors.view().Rows(0, below), 0, products.view());
  Matrix<double> gram(alpha.rows(), alpha.rows());
  MultiplyTransposed(1, std::as_const(products).view(), std::as_const(products).view(), 0,
                     gram.view());
  return std::sqrt(std::max(0.0, SymmetricEigenvalues(gram.view())->back()));
}

// Tests AMS Theorem 2 with the measured norm ‖K̂ − K‖ at several values of b, and Weyl's inequality
// for the eigenvalues. The tolerance for the iteration and for float32 is 1e-4 of the largest
// eigenvalue, divided by b.
TEST(KernelPcaRandomizedTest, ComponentsKeepTheoremTwoAndEigenvaluesWeylsInequality) {
  const Matrix<double> landmarks = Clusters(600, 6, 5);
  double closest = 0;
  for (const bool centred : {false, true}) {
    Matrix<double> vectors = GramOf(landmarks, centred);
    const std::vector<double> rising = SymmetricEigenvectors(vectors.view()).value();
    for (const GramRandomization& randomization : kRandomizations) {
      const KernelPca pca =
          BuildMeasuredKernelPca(
              TaskOf(landmarks),
              {.components = 4, .centred = centred, .seed = 3, .gram = randomization}, NeverStop)
              .value();
      ASSERT_EQ(pca.eigenvalues.size(), 4u);
      EXPECT_LE(pca.residual, 1e-5);
      const double norm = pca.gram->error.norm;
      const Matrix<double> alpha = ExpansionsOf(pca);
      for (int n = 0; n < 4; ++n) {
        EXPECT_NEAR(pca.eigenvalues[n], rising[rising.size() - 1 - n], norm);
      }
      for (const double b : {0.3, 0.5, 0.9}) {
        const double below = b * pca.eigenvalues[3];
        const double sine = SineOf(alpha, vectors, rising, pca.eigenvalues[3] - below);
        EXPECT_LE(sine, (norm + 1e-4 * rising.back()) / below) << b;
        EXPECT_GT(sine, 0) << b;
        closest = std::max(closest, sine * below / norm);
      }
    }
  }
  // For a random K̂ − K, the sine is smaller than its norm allows. gram_theorems_test has a K̂ − K
  // for which the sine is as large as the bound.
  EXPECT_GT(closest, 0.5);
}

// For a matrix of noise, the lowest eigenvalue has about the same magnitude as the highest. So the
// eigenvalues of largest magnitude have either sign. The iteration must shift the matrix to find
// the highest eigenvalues.
TEST(KernelPcaRandomizedTest, ComponentsAreTheHighestEigenvaluesAlsoWhereOthersAreOfLargerModulus) {
  const Matrix<double> landmarks = NormalRows({.rows = 300, .cols = 8, .seed = 9});
  for (const GramRandomization& randomization : kRandomizations) {
    const KernelPcaTask task{.components = 6, .centred = false, .seed = 3, .gram = randomization};
    LandmarkTask far = TaskOf(landmarks);
    far.kernel = MustParseKernel("rbf(gamma=1)");
    const KernelPca pca = BuildKernelPca(far, task, NeverStop).value();
    if (randomization.quantise) {
      EXPECT_GT(pca.shift, 0);
    }
    const RandomizedGram gram =
        RandomizedGram::Draw(KernelProgram::Compile(far.kernel), landmarks.view(), randomization,
                             task.seed, NeverStop)
            .value();
    Matrix<float> dense(300, 300);
    ASSERT_TRUE(gram.SubtractFrom(dense.view(), NeverStop).ok());
    Matrix<double> k = Converted<double, float>(dense.view());
    for (int64_t i = 0; i < k.size(); ++i) k.data()[i] = -k.data()[i];
    const std::vector<double> rising = SymmetricEigenvalues(k.view()).value();
    for (int n = 0; n < 6; ++n) {
      EXPECT_NEAR(pca.eigenvalues[n], rising[299 - n], 1e-4 * rising.back()) << n;
    }
  }
}

// Tests Theorem 4 with c = 2. α and α̂ are the unit eigenvectors of K and K̂ for a component. If a
// component is reported as apart from the others, |α − α̂| must be at most 1/2. The first component
// of these clusters is reported as apart.
TEST(KernelPcaRandomizedTest, ComponentsThatAreApartAreKsOwn) {
  const Matrix<double> landmarks = Clusters(800, 4, 5);
  Matrix<double> vectors = GramOf(landmarks, false);
  const std::vector<double> rising = SymmetricEigenvectors(vectors.view()).value();
  const absl::StatusOr<KernelPca> pca = BuildMeasuredKernelPca(
      TaskOf(landmarks), {.components = 4, .centred = false, .seed = 3, .gram = {.sparsify = 1.5}},
      NeverStop);
  ASSERT_TRUE(pca.ok()) << pca.status();
  EXPECT_THAT(pca->gram->apart, Contains(1));
  const Matrix<double> alpha = ExpansionsOf(*pca);
  for (const int64_t n : pca->gram->apart) {
    double cosine = 0;
    for (int64_t i = 0; i < 800; ++i) {
      cosine += alpha(n - 1, i) * vectors(800 - n, i);
    }
    EXPECT_GE(std::abs(cosine), 1 - 0.125) << n;  // |α − α̂|² = 2 − 2 cos θ
    EXPECT_GT(cosine, 0) << n << ": the largest entry is positive in both";
  }
}

// Returns the orthogonal matrix nearest to a square matrix whose singular values are at most 1 (by
// the iteration of Newton and Schulz).
Matrix<double> NearestRotation(Matrix<double> x) {
  const int64_t n = x.rows();
  for (int step = 0; step < 60; ++step) {
    Matrix<double> next(n, n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        next(i, j) = 1.5 * x(i, j);
        for (int64_t a = 0; a < n; ++a) {
          for (int64_t b = 0; b < n; ++b) next(i, j) -= 0.5 * x(i, a) * x(b, a) * x(b, j);
        }
      }
    }
    x = std::move(next);
  }
  return x;
}

// Tests Theorem 3. λ_ℓ and λ_{ℓ+1} are eigenvalues of K in falling order, and E = K̂ − K. The
// theorem assumes a gap λ_ℓ − λ_{ℓ+1} of 2c‖E‖ with c >= 1. Then a single rotation of the first ℓ
// features of K̂ brings them to within ‖v‖/c of those of K, for every x. These features have no
// factor λ^{-1/2}, and v is the vector (k(x_1, x) … k(x_m, x)) of kernel values.
TEST(KernelPcaRandomizedTest, OneRotationBringsTheFeaturesOfKWithinTheoremThree) {
  constexpr int64_t kComponents = 3;
  constexpr int64_t kRows = 900;
  const Matrix<double> landmarks = Clusters(kRows, kComponents, 5);
  const Matrix<double> fresh = Clusters(60, kComponents, 5);
  const Matrix<double> v = NaiveKernelMatrix(MustParseKernel(kRandomizedKernel), fresh, landmarks);
  Matrix<double> vectors = GramOf(landmarks, false);
  const std::vector<double> rising = SymmetricEigenvectors(vectors.view()).value();
  Matrix<double> alpha(kComponents, kRows);
  for (int64_t n = 0; n < kComponents; ++n) {
    std::copy_n(vectors.row(kRows - 1 - n), kRows, alpha.row(n));
  }
  for (const GramRandomization& randomization :
       {GramRandomization{.sparsify = 1.3}, GramRandomization{.sparsify = 2}}) {
    const KernelPca pca =
        BuildMeasuredKernelPca(
            TaskOf(landmarks),
            {.components = kComponents, .centred = false, .seed = 3, .gram = randomization},
            NeverStop)
            .value();
    const double gap = rising[kRows - kComponents] - rising[kRows - kComponents - 1];
    const double c = gap / (2 * pca.gram->error.norm);
    ASSERT_GE(c, 1);
    const Matrix<double> hat = ExpansionsOf(pca);
    Matrix<double> products(kComponents, kComponents);
    MultiplyTransposed(1, alpha.view(), hat.view(), 0, products.view());
    const Matrix<double> rotation = NearestRotation(std::move(products));
    Matrix<double> f(60, kComponents);
    Matrix<double> g(60, kComponents);
    MultiplyTransposed(1, v.view(), alpha.view(), 0, f.view());
    MultiplyTransposed(1, v.view(), hat.view(), 0, g.view());
    for (int64_t i = 0; i < 60; ++i) {
      double off = 0;
      double length = 0;
      for (int64_t n = 0; n < kComponents; ++n) {
        double rotated = 0;
        for (int64_t k = 0; k < kComponents; ++k) rotated += rotation(n, k) * g(i, k);
        off += (f(i, n) - rotated) * (f(i, n) - rotated);
      }
      for (int64_t j = 0; j < kRows; ++j) length += v(i, j) * v(i, j);
      EXPECT_LE(std::sqrt(off), std::sqrt(length) / c) << i;
      EXPECT_GT(off, 0) << i;
    }
  }
}

// With float32 products, the residual is 1e-5 of λ₁ instead of 1e-10 with float64.
TEST(KernelPcaRandomizedTest, AGramMatrixInFloat32HasTheSameLeadingPairs) {
  const Matrix<double> landmarks = Clusters(500, 5, 4);
  for (const bool centred : {false, true}) {
    const KernelPcaTask exact{.components = 4, .centred = centred, .seed = 3};
    KernelPcaTask single = exact;
    single.single_gram = true;
    const KernelPca a = BuildKernelPca(TaskOf(landmarks), exact, NeverStop).value();
    const KernelPca b = BuildKernelPca(TaskOf(landmarks), single, NeverStop).value();
    EXPECT_FALSE(b.gram.has_value());
    for (int n = 0; n < 4; ++n) {
      EXPECT_NEAR(a.eigenvalues[n], b.eigenvalues[n], 2e-5 * a.eigenvalues[0]);
    }
  }
}

// Compares the mean of a rounded feature f̂(x) over kDraws draws with the exact feature f(x). α_i
// are the weights of the feature, μ_i the means that centring subtracts, λ the eigenvalue and s the
// scale of the rounding. f̂(x) has mean f(x). Its variance is Σ_i |α_i|(1/s − |α_i|)·(k(x_i, x) −
// μ_i)²/λ, summed over the weights under 1/s. The mean must be within six standard deviations of
// f(x). (Hoeffding's bound is tested in gram_theorems_test.)
TEST(KernelPcaRandomizedTest, RoundedExpansionsAreUnbiased) {
  constexpr int kDraws = 400;
  constexpr double kScale = 12;
  const Matrix<double> landmarks = NormalRows({.rows = 150, .cols = 3, .seed = 5});
  const Matrix<double> x = NormalRows({.rows = 5, .cols = 3, .seed = 6});
  const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kRandomizedKernel), x, landmarks);
  for (const bool centred : {false, true}) {
    KernelPcaTask task{.components = 3, .centred = centred, .seed = 7};
    const KernelPca exact = BuildKernelPca(TaskOf(landmarks), task, NeverStop).value();
    const Matrix<double> f = MustTransformWide(exact.served, WireRows(x));
    const Matrix<double> alpha = ExpansionsOf(exact);
    const std::vector<double>& centre = std::get<1>(exact.served.stages).centre;
    Matrix<double> mean(5, 3);
    task.rounding = kScale;
    for (int draw = 0; draw < kDraws; ++draw) {
      // With another seed, the iteration starts from other vectors but finds the same pairs.
      // Weights are rounded differently.
      task.seed = 100 + draw;
      const KernelPca rounded = BuildKernelPca(TaskOf(landmarks), task, NeverStop).value();
      const Matrix<double> g = MustTransformWide(rounded.served, WireRows(x));
      for (int64_t i = 0; i < 15; ++i) mean.data()[i] += g.data()[i] / kDraws;
    }
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t n = 0; n < 3; ++n) {
        double variance = 0;
        for (int64_t j = 0; j < 150; ++j) {
          const double a = std::abs(alpha(n, j));
          const double value = k(i, j) - (centred ? centre[j] : 0);
          if (a < 1 / kScale) variance += a * (1 / kScale - a) * value * value;
        }
        variance /= exact.eigenvalues[n];
        EXPECT_NEAR(mean(i, n), f(i, n), 6 * std::sqrt(variance / kDraws) + 1e-7) << i << " " << n;
      }
    }
  }
}

// Tests centred features of a row x that is far from all landmarks x_i. All k(x_i, x) are 0 there,
// so centring turns them into −μ_i, and the rounded weights are multiplied by these numbers. The
// bound must use the range of 0 and all −μ_i. The range of 0 and all k(x_i, x) is 0, so a bound
// with this range would wrongly state that the features do not change.
TEST(KernelPcaRandomizedTest, RoundedCentredExpansionsMoveByTheRangeOfTheCentredValues) {
  constexpr int kDraws = 300;
  constexpr int64_t kRows = 150;
  constexpr double kScale = 8;
  const Matrix<double> landmarks = NormalRows({.rows = kRows, .cols = 3, .seed = 5});
  Matrix<double> x(1, 3);
  for (int64_t j = 0; j < 3; ++j) x(0, j) = 1000;
  const Matrix<double> k =
      NaiveKernelMatrix(MustParseKernel(kRandomizedKernel), landmarks, landmarks);
  double centred_range = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    double mean = 0;
    for (int64_t j = 0; j < kRows; ++j) mean += k(i, j) / static_cast<double>(kRows);
    centred_range = std::max(centred_range, mean);
  }
  const Matrix<double> far = NaiveKernelMatrix(MustParseKernel(kRandomizedKernel), x, landmarks);
  ASSERT_EQ(*std::max_element(far.data(), far.data() + kRows), 0);
  KernelPcaTask task{.components = 3, .centred = true, .seed = 7};
  const KernelPca exact = BuildKernelPca(TaskOf(landmarks), task, NeverStop).value();
  const Matrix<double> f = MustTransformWide(exact.served, WireRows(x));
  task.rounding = kScale;
  std::vector<double> changes;
  for (int draw = 0; draw < kDraws; ++draw) {
    task.seed = 100 + draw;
    const KernelPca rounded = BuildKernelPca(TaskOf(landmarks), task, NeverStop).value();
    const Matrix<double> g = MustTransformWide(rounded.served, WireRows(x));
    for (int64_t n = 0; n < 3; ++n) {
      changes.push_back(std::abs(g(0, n) - f(0, n)) * std::sqrt(exact.eigenvalues[n]));
    }
  }
  EXPECT_GT(*std::max_element(changes.begin(), changes.end()), 0.04);
  // For each t, a change of t or more may occur no more often than the stated probability, plus six
  // standard deviations. With a range that is 2.5 times too small, changes of t or more occur too
  // often.
  int broken = 0;
  const double all = static_cast<double>(changes.size());
  for (double t = 0.01; t < 1; t *= 1.1) {
    const auto moved = static_cast<double>(
        std::count_if(changes.begin(), changes.end(), [&](double change) { return change >= t; }));
    const auto allowed = [&](double range) {
      const double p = RoundingProbability(kRows, range, kScale, t);
      return all * p + 6 * std::sqrt(all * p);
    };
    EXPECT_LE(moved, allowed(centred_range)) << t;
    broken += moved > allowed(centred_range / 2.5) ? 1 : 0;
  }
  EXPECT_GT(broken, 0);
}

// Tests the certificate's statement about rounding.
TEST(KernelPcaRandomizedTest, TheRoundingStatementNamesTheRangeOfWhatIsRounded) {
  const Matrix<double> x = Clusters(900, 5, 4);
  const std::string centred =
      MustBuild(SpecOf("kpca(landmarks=300, dimensions=3, rounding=8)", "rbf(gamma=0.05)"), x)
          .certificate.theorem;
  EXPECT_THAT(centred, HasSubstr("m = 300"));
  EXPECT_THAT(centred, HasSubstr("c the range of 0 and k(x_i, x) − μ_i"));
  const std::string through_origin =
      MustBuild(
          SpecOf("kpca(landmarks=300, dimensions=3, centred=false, rounding=8)", "rbf(gamma=0.05)"),
          x)
          .certificate.theorem;
  EXPECT_THAT(through_origin, HasSubstr("c the range of 0 and k(x_i, x) ("));
}

TEST(KernelPcaRandomizedTest, RoundingDropsLandmarksAndKeepsLargeWeights) {
  const Matrix<double> landmarks = NormalRows({.rows = 400, .cols = 3, .seed = 8});
  const KernelPcaTask exact{.components = 2, .centred = true, .seed = 1};
  KernelPcaTask rounded = exact;
  rounded.rounding = 6;
  const KernelPca a = BuildKernelPca(TaskOf(landmarks), exact, NeverStop).value();
  const KernelPca b = BuildKernelPca(TaskOf(landmarks), rounded, NeverStop).value();
  EXPECT_EQ(a.landmarks, 400);
  // Each component keeps about s·Σ|α_i| of its 400 weights α_i, where s is the scale of the
  // rounding. This is at most s√m = 120.
  EXPECT_LT(b.landmarks, 260);
  EXPECT_EQ(b.rounding->all_weights, 800);
  EXPECT_LE(b.rounding->weights, 2 * b.landmarks);
  const auto& stages = std::get<1>(b.served.stages);
  const auto& sparse = std::get<SparseProjection<double>>(stages.projection);
  EXPECT_EQ(static_cast<int64_t>(sparse.values.size()), b.rounding->weights);
  for (size_t i = 0; i < sparse.values.size(); ++i) {
    const double alpha = sparse.values[i] * std::sqrt(b.eigenvalues[sparse.column_indices[i]]);
    EXPECT_GE(std::abs(alpha), (1 - 1e-12) / 6);
  }
  // At a scale that leaves every weight as it is, nothing changes.
  rounded.rounding = 1e9;
  const KernelPca same = BuildKernelPca(TaskOf(landmarks), rounded, NeverStop).value();
  const Matrix<double> f = MustTransformWide(a.served, WireRows(landmarks));
  const Matrix<double> g = MustTransformWide(same.served, WireRows(landmarks));
  EXPECT_LE(LargestDifference(f, g), 1e-7);
  // A scale so small that no weight is left is an error.
  rounded.rounding = 1e-6;
  const absl::Status status = BuildKernelPca(TaskOf(landmarks), rounded, NeverStop).status();
  EXPECT_EQ(ReasonOf(status), "COMPONENT_ROUNDED_AWAY");
}

TEST(KernelPcaRandomizedTest, EachSwitchIsCertifiedAndRepeatable) {
  const Matrix<double> x = Clusters(900, 5, 4);
  struct Case {
    const char* options;
    const char* says;
  };
  for (const Case& c : {Case{"sparsify=3", "one entry in 3 of K's, made as much larger"},
                        Case{"quantise=true", "of signs alone"},
                        Case{"sparsify=2.5, quantise=true", "one entry in 2.5 of K's, as a sign"},
                        Case{"rounding=20", "rounding at s = 20"},
                        Case{"sparsify=2, rounding=20, input_dimensions=3", "Theorem 6"}}) {
    const BuildSpec spec = SpecOf(
        std::string("kpca(landmarks=300, dimensions=3, ") + c.options + ")", "rbf(gamma=0.05)");
    const BuiltVersion built = MustBuild(spec, x);
    EXPECT_THAT(built.provenance.spec_text, HasSubstr(c.options));
    EXPECT_THAT(built.certificate.theorem, HasSubstr(c.says));
    EXPECT_EQ(built.output_columns, 3);
    EXPECT_EQ(MustBuild(spec, x).bytes, built.bytes) << c.options;
    EXPECT_TRUE(built.certificate.serving_error.has_value());
  }
  const BuiltVersion noisy =
      MustBuild(SpecOf("kpca(landmarks=300, dimensions=30, sparsify=10)", "rbf(gamma=5)"), x);
  EXPECT_THAT(noisy.certificate.warnings, Contains(HasSubstr("they may be of noise alone")));
}

}  // namespace
}  // namespace phimap::testing
