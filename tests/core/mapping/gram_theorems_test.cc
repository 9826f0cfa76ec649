// Tests Theorems 2 to 5 of Achlioptas, McSherry, Schölkopf 2001 (AMS), and Hoeffding's bound of
// their equation 1. The Gram matrices make these bounds as tight as we know how to. Randomizing and
// rounding are done by the builder of kernel PCA. Each test also shows that the bound would be
// violated if its constant were smaller by a factor of 3 (in some tests 2).
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/theory/gram_bounds.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/rare_failures.h"

namespace phimap::testing {
namespace {

LandmarkTask TaskOfLinearRows(const Matrix<double>& landmarks) {
  UseOneBlasThread();
  return {.kernel = MustParseKernel("linear()"),
          .input = {.columns = landmarks.cols()},
          .landmarks = landmarks.view(),
          .serving_type = FloatType::kFloat64};
}

// Rows for the kernel linear(). They come in pairs, and each pair has a plane of its own. So the
// Gram matrix K consists of 2×2 blocks (A, k; k, A − δ) with A = 200, 100, 50, 25, k = kOff and δ =
// `difference`.
//
// Sparsification with s = 2 changes an entry k to 0 or to 2k. So K̂ differs from K by ‖K̂ − K‖ = k
// in every draw, and this difference mixes only two neighbouring components. With a dense m×m
// matrix K, the effect of a random K̂ − K on two given components would be only 1/√m of its norm.
// Such a K would show nothing about these theorems.
class PairedRows {
 public:
  static constexpr int kPairs = 4;
  static constexpr double kOff = 0.5;

  explicit PairedRows(double difference) : rows_(2 * kPairs, 2 * kPairs) {
    for (int p = 0; p < kPairs; ++p) {
      const double a = 200 * std::pow(0.5, p);
      rows_(2 * p, 2 * p) = std::sqrt(a);
      rows_(2 * p + 1, 2 * p) = kOff / std::sqrt(a);
      rows_(2 * p + 1, 2 * p + 1) = std::sqrt(a - difference - kOff * kOff / a);
    }
    vectors_ = NaiveKernelMatrix(MustParseKernel("linear()"), rows_, rows_);
    values_ = SymmetricEigenvectors(vectors_.view()).value();
  }

  const Matrix<double>& rows() const { return rows_; }
  // Returns the n-th largest eigenvalue of K, counted from 0, and its unit eigenvector.
  double value(int n) const { return values_[values_.size() - 1 - n]; }
  const double* vector(int n) const { return vectors_.row(vectors_.rows() - 1 - n); }

 private:
  Matrix<double> rows_;
  Matrix<double> vectors_;
  std::vector<double> values_;
};

// The two leading components of K̂.
struct SparsifiedPca {
  std::vector<double> values;
  Matrix<double> vectors;  // rows of length 1

  SparsifiedPca(const PairedRows& pairs, uint64_t seed) {
    const absl::StatusOr<KernelPca> pca = BuildKernelPca(
        TaskOfLinearRows(pairs.rows()),
        {.components = 2, .centred = false, .seed = seed, .gram = {.sparsify = 2}}, NeverStop);
    EXPECT_TRUE(pca.ok()) << pca.status();
    values = pca->eigenvalues;
    const Matrix<double>& w =
        std::get<DenseProjection<double>>(std::get<1>(pca->served.stages).projection).matrix;
    vectors = Matrix<double>(w.cols(), w.rows());
    for (int64_t n = 0; n < w.cols(); ++n) {
      for (int64_t i = 0; i < w.rows(); ++i) vectors(n, i) = w(i, n) * std::sqrt(values[n]);
    }
  }
};

double ProductOf(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

constexpr int kRowsOfPairs = 2 * PairedRows::kPairs;
constexpr uint64_t kPairSeeds = 8;

// Tests the first inequality of Theorem 2. Computes ‖F̂ᵀ(t)·F_⊥(t − b)‖, the part of K̂'s first
// eigenvector that lies in the span of K's other eigenvectors. t is the first eigenvalue λ̂_1 of
// K̂. b has the largest value for which the second eigenvalue λ_2 of K is still below t − b, that
// is, just under t − λ_2.
TEST(GramTheoremsTest, WhatIsFoundIsNotOfLowerComponentsByTheoremTwo) {
  for (const double difference : {1.0, 2.0, 8.0}) {
    const PairedRows pairs(difference);
    for (uint64_t seed = 0; seed < kPairSeeds; ++seed) {
      const SparsifiedPca found(pairs, seed);
      double square = 0;
      for (int n = 1; n < kRowsOfPairs; ++n) {
        const double product = ProductOf(found.vectors.row(0), pairs.vector(n), kRowsOfPairs);
        square += product * product;
      }
      const double b = found.values[0] - pairs.value(1);
      const auto holds = [&](double constant) {
        return std::sqrt(square) <= constant * PairedRows::kOff / b * (1 + 1e-5);
      };
      EXPECT_TRUE(holds(1)) << difference << " " << seed;
      EXPECT_FALSE(holds(0.5)) << difference << " " << seed;
    }
  }
}

// Tests the second inequality of Theorem 2. Computes ‖Fᵀ(t + b)·F̂_⊥(t)‖, the part of K's first
// eigenvector that is outside of K̂'s first one. t is just over the second eigenvalue λ̂_2 of K̂,
// and b = λ_1 − t for the first eigenvalue λ_1 of K.
TEST(GramTheoremsTest, WhatIsLargeIsFoundByTheoremTwo) {
  for (const double difference : {1.0, 2.0, 8.0}) {
    const PairedRows pairs(difference);
    for (uint64_t seed = 0; seed < kPairSeeds; ++seed) {
      const SparsifiedPca found(pairs, seed);
      const double cosine = ProductOf(found.vectors.row(0), pairs.vector(0), kRowsOfPairs);
      double square = 0;
      for (int i = 0; i < kRowsOfPairs; ++i) {
        const double off = pairs.vector(0)[i] - cosine * found.vectors(0, i);
        square += off * off;
      }
      const double b = pairs.value(0) - found.values[1];
      const auto holds = [&](double constant) {
        return std::sqrt(square) <= constant * PairedRows::kOff / b * (1 + 1e-5);
      };
      EXPECT_TRUE(holds(1)) << difference << " " << seed;
      EXPECT_FALSE(holds(0.5)) << difference << " " << seed;
    }
  }
}

// With equal diagonal entries, the eigenvalues A ± k move by exactly k, up or down.
TEST(GramTheoremsTest, EigenvaluesMoveByTheNormAndNoMoreByWeylsInequality) {
  const PairedRows pairs(0);
  for (uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    const SparsifiedPca found(pairs, seed);
    for (int n = 0; n < 2; ++n) {
      EXPECT_NEAR(std::abs(found.values[n] - pairs.value(n)), PairedRows::kOff, 1e-4) << seed;
    }
  }
}

// Tests Theorem 4, and Theorem 3 with ℓ = 1, where the rotation is only a sign. If the gap between
// the first two eigenvalues is 2c‖K̂ − K‖, the first feature changes by |f_1(x) − f̂_1(x)| <=
// ‖v‖/c. This is for features without the factor λ^{-1/2}. v is the vector of the kernel values of
// x. The worst v has the direction of α − α̂, the difference of the first eigenvectors of K and K̂.
//
// For every c, half of the bound is violated in draws in which the entry k is dropped. In draws in
// which k is doubled, the change is only 0.02 to 0.5 of the bound.
TEST(GramTheoremsTest, FeaturesAreKsOwnByTheoremFourAtEveryC) {
  double largest_c = 0;
  for (const double difference : {0.1, 1.0, 2.0, 4.0, 8.0, 16.0}) {
    const PairedRows pairs(difference);
    const double c = (pairs.value(0) - pairs.value(1)) / (2 * PairedRows::kOff);
    ASSERT_GE(c, 1);
    largest_c = std::max(c, largest_c);
    double largest = 0;
    for (uint64_t seed = 0; seed < kPairSeeds; ++seed) {
      const SparsifiedPca found(pairs, seed);
      const double sign =
          ProductOf(found.vectors.row(0), pairs.vector(0), kRowsOfPairs) > 0 ? 1 : -1;
      // Features are f(x) = α·v and f̂(x) = α̂·v. For the worst unit vector v = (α − α̂)/‖α − α̂‖,
      // they differ by ‖α − α̂‖.
      double square = 0;
      for (int i = 0; i < kRowsOfPairs; ++i) {
        const double off = sign * found.vectors(0, i) - pairs.vector(0)[i];
        square += off * off;
      }
      EXPECT_LE(std::sqrt(square), 1 / c) << difference << " " << seed;
      largest = std::max(largest, std::sqrt(square));
    }
    EXPECT_GT(largest, 1 / (2 * c)) << difference;
  }
  EXPECT_GT(largest_c, 8);
}

// m equal rows. All entries of K are 1, the first unit eigenvector is α = (1/√m, …, 1/√m), and the
// feature is f(x) = √m for each row.
class EqualRows {
 public:
  explicit EqualRows(int64_t m) : rows_(m, 1) { std::fill_n(rows_.data(), m, 1.0); }

  struct Rounded {
    double value;  // f̂(x)
    int64_t weights;
  };
  Rounded RoundedAt(double scale, uint64_t seed) const {
    const KernelPca pca =
        BuildKernelPca(TaskOfLinearRows(rows_),
                       {.components = 1, .centred = false, .seed = seed, .rounding = scale},
                       NeverStop)
            .value();
    Matrix<double> x(1, 1);
    x(0, 0) = 1;
    const double f = MustTransformWide(pca.served, WireRows(x))(0, 0);
    return {f * std::sqrt(pca.eigenvalues[0]), pca.rounding->weights};
  }

 private:
  Matrix<double> rows_;
};

// Tests equation 1, Hoeffding's bound on the change of a feature by rounding. With the scale s =
// √m/2, each of the m weights is rounded by a fair coin, and each kernel value is as large as the
// range allows. This gives the largest variance that the inequality covers. So the bound exceeds
// the true probability only by as much as it exceeds the tail of a normal distribution. If mc²,
// with c the range of the values, is replaced by a third of it, the bound is violated.
TEST(GramTheoremsTest, RoundedExpansionsMissAsRarelyAsStated) {
  constexpr int kRows = 100;
  constexpr int kTrials = 1000;
  const EqualRows rows(kRows);
  std::vector<double> off;
  for (int trial = 0; trial < kTrials; ++trial) {
    off.push_back(std::abs(rows.RoundedAt(5, static_cast<uint64_t>(trial)).value - 10));
  }
  const auto holds = [&](double t, double range) {
    const double p = RoundingProbability(kRows, range, 5, t);
    const auto missed = std::count_if(off.begin(), off.end(), [&](double o) { return o >= t; });
    return AreAsRareAs(p, missed, kTrials);
  };
  for (const double t : {1.1, 2.1, 3.1}) {
    EXPECT_TRUE(holds(t, 1)) << t;
  }
  EXPECT_FALSE(holds(2.1, std::sqrt(1.0 / 3)));
}

// Tests Theorem 5 with ε = 0.5, T = 8, range c = 1 and m = 170 rows. Its scale is s = 2c√m/(εT) =
// √m/2. The theorem makes two promises. First, fewer than 4cm/(εT) weights remain, which is twice
// their mean. Second, the rounded feature f̂ is within 1 ± ε times f = √m, or both are under T√ln m
// = 18.1.
//
// Here f = 13.0 is under 18.1, but 1.5·f is over it. So only f̂ > 1.5·f violates the second
// promise, which makes the test as tight as possible. With the theorem's scale, the promised
// probability is 1/m³, and f̂ = 1.5·f is 6.5 standard deviations from f. With a third of this scale
// it is 2.9 standard deviations from f, so some draws violate the promise.
TEST(GramTheoremsTest, RoundingAtTheScaleOfTheoremFiveKeepsItsTwoPromises) {
  constexpr int kRows = 170;
  constexpr double kEpsilon = 0.5;
  constexpr double kThreshold = 8;
  ASSERT_LE(kThreshold, std::sqrt(kRows / std::log(1.0 * kRows)) / kEpsilon);
  const EqualRows rows(kRows);
  const double exact = std::sqrt(1.0 * kRows);
  const double trivial = kThreshold * std::sqrt(std::log(1.0 * kRows));
  ASSERT_LT(exact, trivial);
  struct Broken {
    int four = 0, two = 0;  // draws with at least 4cm/(εT) weights, and with at least half of that
    int value = 0;          // draws whose f̂ is neither near f nor under T√ln m
  };
  const auto broken = [&](double scale, int trials) {
    Broken count;
    for (int trial = 0; trial < trials; ++trial) {
      const EqualRows::Rounded f = rows.RoundedAt(scale, static_cast<uint64_t>(trial));
      const double weights = static_cast<double>(f.weights) * kEpsilon * kThreshold / kRows;
      count.four += weights >= 4 ? 1 : 0;
      count.two += weights >= 2 ? 1 : 0;
      const bool near = std::abs(f.value - exact) <= kEpsilon * exact;
      count.value += near || f.value < trivial ? 0 : 1;
    }
    return count;
  };
  const double scale = RoundingScale(kRows, 1, kEpsilon, kThreshold);
  EXPECT_NEAR(scale, exact / 2, 1e-12);
  const Broken stated = broken(scale, 500);
  EXPECT_EQ(stated.four, 0);
  EXPECT_GT(stated.two, 150);
  EXPECT_EQ(stated.value, 0);
  EXPECT_GT(broken(scale / 3, 2000).value, 0);
}

}  // namespace
}  // namespace phimap::testing
