#include "core/mapping/f1_f2_f3/landmark_mapping.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Returns rows that float32 represents exactly, so that landmarks are the same in either serving
// type.
Matrix<double> Rows(int64_t rows, int64_t cols, uint64_t seed) {
  const Matrix<float> x = UniformFloatRows({.rows = rows, .cols = cols, .seed = seed});
  return Converted<double, float>(x.view());
}

LandmarkTask TaskOf(const char* kernel, const Matrix<double>& landmarks, FloatType type) {
  UseOneBlasThread();
  LandmarkTask task{.kernel = MustParseKernel(kernel),
                    .input = {},
                    .landmarks = landmarks.view(),
                    .serving_type = type};
  task.input.columns = landmarks.cols();
  return task;
}

// Features that are computed in float32 have an error of about 1e-6 here (see f2_accuracy_test).
double Tolerance(FloatType type) { return type == FloatType::kFloat32 ? 1e-5 : 1e-12; }

// Computes k_r(x)ᵀ K_rr⁻¹ k_r(y) by Gaussian elimination in long double. K_rr is the kernel matrix
// of the r pivots, and k_r(x) is the vector of kernel values of x with the pivots. This is the
// definition of a projection onto the span of the pivots. It needs no factorization.
Matrix<double> NaiveProjectionGram(const KernelExpression& kernel, const Matrix<double>& pivots,
                                   const Matrix<double>& x) {
  const int64_t r = pivots.rows();
  const int64_t n = x.rows();
  const auto value = [&](const double* a, const double* b) {
    return NaiveKernel(kernel.root(), a, b, x.cols());
  };
  Matrix<long double> system(r, r + n);
  for (int64_t i = 0; i < r; ++i) {
    for (int64_t j = 0; j < r; ++j) system(i, j) = value(pivots.row(i), pivots.row(j));
    for (int64_t j = 0; j < n; ++j) system(i, r + j) = value(pivots.row(i), x.row(j));
  }
  for (int64_t c = 0; c < r; ++c) {
    for (int64_t i = 0; i < r; ++i) {
      if (i == c) continue;
      const long double factor = system(i, c) / system(c, c);
      for (int64_t j = c; j < r + n; ++j) system(i, j) -= factor * system(c, j);
    }
  }
  Matrix<double> gram(n, n);
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = 0; b < n; ++b) {
      long double sum = 0;
      for (int64_t i = 0; i < r; ++i) {
        sum += value(pivots.row(i), x.row(a)) * system(i, r + b) / system(i, i);
      }
      gram(a, b) = static_cast<double>(sum);
    }
  }
  return gram;
}

constexpr FloatType kTypes[] = {FloatType::kFloat32, FloatType::kFloat64};
constexpr const char* kLandmarkKernels[] = {"rbf(gamma=0.7)", "poly(degree=3, gamma=0.5, coef0=1)",
                                            "linear()", "rbf(gamma=1) + 0.5*linear()"};

TEST(LandmarkMappingTest, F1IsTheKernelAgainstEachLandmarkInOrder) {
  const Matrix<double> landmarks = Rows(40, 6, 1);
  const Matrix<double> x = Rows(25, 6, 2);
  for (const FloatType type : kTypes) {
    for (const char* kernel : {"rbf(gamma=0.7)", "poly(degree=3, gamma=0.5, coef0=1)", "linear()",
                               "-1*linear()", "poly(degree=2, coef0=-1)"}) {
      const BuiltMapping mapping = BuildF1(TaskOf(kernel, landmarks, type)).value();
      EXPECT_EQ(mapping.served.serving_type(), type);
      EXPECT_EQ(mapping.reference.serving_type(), FloatType::kFloat64);
      const Matrix<double> f = MustTransformWide(mapping.served, WireRows(x));
      const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kernel), x, landmarks);
      ASSERT_EQ(f.cols(), 40);
      EXPECT_LE(LargestDifference(f, k), Tolerance(type)) << kernel;
    }
  }
}

TEST(LandmarkMappingTest, F2IsTheOrthogonalProjectionOnTheSpanOfItsPivots) {
  const Matrix<double> landmarks = Rows(30, 6, 3);
  const Matrix<double> x = Rows(35, 6, 4);
  for (const FloatType type : kTypes) {
    for (const char* kernel : kLandmarkKernels) {
      const BuiltMapping mapping = BuildF2(TaskOf(kernel, landmarks, type), NeverStop).value();
      const Matrix<double> f = MustTransformWide(mapping.served, WireRows(x));
      ASSERT_EQ(f.cols(), mapping.cholesky.rank());
      const Matrix<double> gram = NaiveGram(f, f);
      const Matrix<double> expected =
          NaiveProjectionGram(MustParseKernel(kernel), mapping.pivots, x);
      const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kernel), x, x);
      for (int64_t i = 0; i < 35; ++i) {
        for (int64_t j = 0; j < 35; ++j) {
          ASSERT_NEAR(gram(i, j), expected(i, j), 10 * Tolerance(type)) << kernel;
        }
        // A projection never makes a vector longer.
        EXPECT_GE(k(i, i) - gram(i, i), -10 * Tolerance(type)) << kernel;
      }
    }
  }
}

// Projecting a vector that is already in the span does not change it. So the features of the pivots
// are the rows of L_r, the triangular factor of the pivots' kernel matrix.
TEST(LandmarkMappingTest, F2IsIdempotentOnItsSpan) {
  const Matrix<double> landmarks = Rows(60, 4, 5);
  for (const FloatType type : kTypes) {
    const absl::StatusOr<BuiltMapping> mapping =
        BuildF2(TaskOf("rbf(gamma=0.7)", landmarks, type), NeverStop);
    const Matrix<double> f = MustTransformWide(mapping->served, WireRows(mapping->pivots));
    for (int64_t i = 0; i < f.rows(); ++i) {
      for (int64_t j = 0; j < f.cols(); ++j) {
        ASSERT_NEAR(f(i, j), mapping->factor(i, j), 30 * Tolerance(type)) << i << ", " << j;
      }
    }
  }
}

TEST(LandmarkMappingTest, FirstCoordinatesOfF2AreTheF2OfTheFirstPivots) {
  const Matrix<double> landmarks = Rows(50, 5, 6);
  const Matrix<double> x = Rows(20, 5, 7);
  const absl::StatusOr<BuiltMapping> whole =
      BuildF2(TaskOf("rbf(gamma=0.7)", landmarks, FloatType::kFloat64), NeverStop);
  const Matrix<double> f = MustTransformWide(whole->served, WireRows(x));
  for (const int64_t prefix : {1, 2, 20, 49}) {
    Matrix<double> first = Matrix<double>::Uninit(prefix, 5);
    std::copy_n(whole->pivots.data(), first.size(), first.data());
    const absl::StatusOr<BuiltMapping> part =
        BuildF2(TaskOf("rbf(gamma=0.7)", first, FloatType::kFloat64), NeverStop);
    ASSERT_EQ(part->cholesky.rank(), prefix);
    const Matrix<double> g = MustTransformWide(part->served, WireRows(x));
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t j = 0; j < prefix; ++j) ASSERT_NEAR(g(i, j), f(i, j), 1e-10) << prefix;
    }
  }
}

TEST(LandmarkMappingTest, ReportsItsFactorizationAndWhatItLeftOut) {
  const Matrix<double> landmarks = Rows(50, 2, 8);
  const absl::StatusOr<BuiltMapping> mapping =
      BuildF2(TaskOf("poly(degree=2, coef0=1)", landmarks, FloatType::kFloat32), NeverStop);
  const Matrix<double> k =
      NaiveKernelMatrix(MustParseKernel("poly(degree=2, coef0=1)"), landmarks, landmarks);
  double trace = 0;
  for (int64_t i = 0; i < 50; ++i) trace += k(i, i);
  EXPECT_EQ(mapping->cholesky.rank(), 6);
  EXPECT_NEAR(mapping->trace, trace, 1e-12 * trace);
  EXPECT_EQ(mapping->tolerance, 50 * 0x1p-24);
  EXPECT_EQ(mapping->zero_landmarks, 0);
  // At full rank, K has no residual, and L·Lᵀ on the pivots is K itself, not the normalised K.
  EXPECT_LE(mapping->residual_trace, 50 * 0x1p-24 * trace);
  for (int64_t i = 0; i < 6; ++i) {
    const int64_t a = mapping->cholesky.pivots[i];
    EXPECT_NEAR(mapping->self[i], k(a, a), 1e-12 * k(a, a));
    for (int64_t j = 0; j <= i; ++j) {
      double product = 0;
      for (int64_t l = 0; l <= j; ++l) product += mapping->factor(i, l) * mapping->factor(j, l);
      const double value = k(a, mapping->cholesky.pivots[j]);
      EXPECT_NEAR(product, value, 1e-11 * std::abs(value) + 1e-11);
    }
  }
  EXPECT_EQ(mapping->pivots.rows(), 6);
  EXPECT_EQ(mapping->factor.rows(), 6);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(std::equal(mapping->pivots.row(i), mapping->pivots.row(i) + 2,
                           landmarks.row(mapping->cholesky.pivots[i])));
  }
}

// The kernel xᵀy folds into one matrix. poly(degree=1) is the same kernel, but does not fold.
TEST(LandmarkMappingTest, FoldedLinearKernelEqualsTheUnfoldedDefinition) {
  const Matrix<double> x = Rows(20, 9, 9);
  for (const int64_t d : {4, 9, 30}) {  // fewer landmarks than columns, equally many, and more
    const Matrix<double> landmarks = Rows(d, 9, 10);
    for (const FloatType type : kTypes) {
      const auto folded = BuildF2(TaskOf("2*linear()", landmarks, type), NeverStop).value();
      const auto plain = BuildF2(TaskOf("2*poly(degree=1)", landmarks, type), NeverStop).value();
      EXPECT_EQ(folded.cholesky.pivots, plain.cholesky.pivots);
      const Matrix<double> f = MustTransformWide(folded.served, WireRows(x));
      const Matrix<double> g = MustTransformWide(plain.served, WireRows(x));
      ASSERT_EQ(f.cols(), std::min<int64_t>(d, 9));
      EXPECT_LE(LargestDifference(f, g), 10 * Tolerance(type)) << d;
      const auto folded3 =
          BuildF3(TaskOf("2*linear()", landmarks, type), {.dimensions = 3, .seed = 5}, NeverStop);
      const auto plain3 = BuildF3(TaskOf("2*poly(degree=1)", landmarks, type),
                                  {.dimensions = 3, .seed = 5}, NeverStop);
      const Matrix<double> f3 = MustTransformWide(folded3->served, WireRows(x));
      const Matrix<double> g3 = MustTransformWide(plain3->served, WireRows(x));
      EXPECT_LE(LargestDifference(f3, g3), 10 * Tolerance(type)) << d;
    }
  }
}

TEST(LandmarkMappingTest, F3IsF2TimesTheFrozenMatrix) {
  constexpr int64_t kDimensions = 17;
  constexpr uint64_t kSeed = 12345;
  const Matrix<double> landmarks = Rows(40, 6, 11);
  const Matrix<double> x = Rows(15, 6, 12);
  const RandomStream normals(kSeed, StreamId::kProjection);
  const RandomStream coins(kSeed, StreamId::kSignProjection);
  for (const FloatType type : kTypes) {
    for (const ProjectionKind kind : {ProjectionKind::kGaussian, ProjectionKind::kSign}) {
      const auto entry = [&](uint64_t index) {
        if (kind == ProjectionKind::kGaussian) return normals.Normal(index);
        return coins.UniformBelow(index, 2) == 0 ? 1.0 : -1.0;
      };
      const LandmarkTask task = TaskOf("rbf(gamma=0.7)", landmarks, type);
      const auto f2 = BuildF2(task, NeverStop);
      const auto f3 =
          BuildF3(task, {.kind = kind, .dimensions = kDimensions, .seed = kSeed}, NeverStop);
      const Matrix<double> u = MustTransformWide(f2->served, WireRows(x));
      const Matrix<double> v = MustTransformWide(f3->served, WireRows(x));
      ASSERT_EQ(v.cols(), kDimensions);
      for (int64_t i = 0; i < 15; ++i) {
        for (int64_t j = 0; j < kDimensions; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < u.cols(); ++k) {
            sum += u(i, k) * entry(static_cast<uint64_t>(k * kDimensions + j));
          }
          ASSERT_NEAR(v(i, j), sum / std::sqrt(1.0 * kDimensions), 30 * Tolerance(type));
        }
      }
    }
  }
}

// Compares inner products of F3 features with those of F2 features u and v. R is a random matrix
// with d columns of N(0, 1) entries. uᵀRRᵀv/d has mean u·v and variance (‖u‖²‖v‖² + (u·v)²)/d,
// because each column R_j contributes a term (R_jᵀu)(R_jᵀv) of variance ‖u‖²‖v‖² + (u·v)². If the
// entries are coins, the variance of a term is smaller by 2Σ_k u_k²v_k². This difference is small
// if the features are many. The seed is fixed. Six standard deviations are allowed.
TEST(LandmarkMappingTest, GramMatrixOfF3FollowsTheJohnsonLindenstraussLaw) {
  const Matrix<double> landmarks = Rows(300, 8, 13);
  const Matrix<double> x = Rows(40, 8, 14);
  const LandmarkTask task = TaskOf("rbf(gamma=0.7)", landmarks, FloatType::kFloat32);
  const Matrix<double> u = MustTransformWide(BuildF2(task, NeverStop)->served, WireRows(x));
  const Matrix<double> exact = NaiveGram(u, u);
  for (const ProjectionKind kind : {ProjectionKind::kGaussian, ProjectionKind::kSign}) {
    for (const int64_t d : {16, 64, 256}) {
      const Matrix<double> v = MustTransformWide(
          BuildF3(task, {.kind = kind, .dimensions = d, .seed = 7}, NeverStop)->served,
          WireRows(x));
      const Matrix<double> gram = NaiveGram(v, v);
      double mean_square = 0;
      for (int64_t i = 0; i < 40; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
          const double sigma = std::sqrt((exact(i, i) * exact(j, j) + exact(i, j) * exact(i, j)) /
                                         static_cast<double>(d));
          const double deviation = (gram(i, j) - exact(i, j)) / sigma;
          EXPECT_LE(std::abs(deviation), 6) << d << ": " << i << ", " << j;
          mean_square += deviation * deviation / (40 * 41 / 2);
        }
      }
      // The deviations must not be too small either. The 820 deviations depend on only 40 vectors,
      // so their mean square can differ from 1 by a factor of up to 3.
      EXPECT_GT(mean_square, 1.0 / 3) << d;
      EXPECT_LT(mean_square, 3) << d;
    }
  }
}

TEST(LandmarkMappingTest, ServedNumbersAreTheReferenceRounded) {
  const Matrix<double> landmarks = UniformRows({.rows = 20, .cols = 3, .seed = 15});
  const auto mapping = BuildF2(TaskOf("rbf(gamma=0.7)", landmarks, FloatType::kFloat32), NeverStop);
  const auto& served =
      std::get<ProductFeatures<float>>(std::get<0>(mapping->served.stages).features);
  const auto& reference =
      std::get<ProductFeatures<double>>(std::get<1>(mapping->reference.stages).features);
  for (int64_t i = 0; i < served.rows.size(); ++i) {
    // A' is rounded before it is factored, so both plans contain the rounded rows.
    EXPECT_EQ(served.rows.data()[i], reference.rows.data()[i]);
  }
}

TEST(LandmarkMappingTest, KernelsThatAreNotDefiniteAreFoundByTheNumbers) {
  const Matrix<double> landmarks = Rows(40, 3, 16);
  for (const char* kernel : {"poly(degree=2, coef0=-1)", "-1*rbf(gamma=1)",
                             "poly(degree=3, gamma=-1)", "linear() + -2*rbf(gamma=0.5)"}) {
    for (const FloatType type : kTypes) {
      const LandmarkTask task = TaskOf(kernel, landmarks, type);
      for (const absl::Status& status :
           {BuildF2(task, NeverStop).status(),
            BuildF3(task, {.dimensions = 3, .seed = 1}, NeverStop).status()}) {
        EXPECT_THAT(status, IsError(StatusCode::kFailedPrecondition,
                                    "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "kernel"))
            << kernel;
      }
    }
  }
}

TEST(LandmarkMappingTest, KernelThatIsZeroHasNothingToProjectOn) {
  const Matrix<double> landmarks = Rows(10, 3, 17);
  const Matrix<double> zeros(10, 3);
  for (const absl::Status& status :
       {BuildF2(TaskOf("0*rbf(gamma=1)", landmarks, FloatType::kFloat32), NeverStop).status(),
        BuildF2(TaskOf("linear()", zeros, FloatType::kFloat64), NeverStop).status(),
        BuildF3(TaskOf("linear()", zeros, FloatType::kFloat32), {.dimensions = 2, .seed = 1},
                NeverStop)
            .status()}) {
    EXPECT_THAT(status, IsError(StatusCode::kFailedPrecondition, "KERNEL_ZERO"));
  }
}

TEST(LandmarkMappingTest, NumbersThatFloat32CannotHoldAreRefused) {
  Matrix<double> landmarks = Rows(10, 3, 18);
  for (int64_t i = 0; i < landmarks.size(); ++i) landmarks.data()[i] *= 1e60;
  for (const char* kernel : {"rbf(gamma=1e-120)", "linear()", "poly(degree=2)"}) {
    const LandmarkTask task = TaskOf(kernel, landmarks, FloatType::kFloat32);
    for (const absl::Status& status :
         {BuildF1(task).status(), BuildF2(task, NeverStop).status(),
          BuildF3(task, {.dimensions = 2, .seed = 1}, NeverStop).status()}) {
      EXPECT_TRUE(status.code() == StatusCode::kFailedPrecondition ||
                  status.code() == StatusCode::kInvalidArgument)
          << kernel << ": " << status;
      EXPECT_TRUE(ReasonOf(status) == "VALUE_NOT_REPRESENTABLE" ||
                  ReasonOf(status) == "VALUE_NOT_FINITE")
          << kernel << ": " << status;
    }
    EXPECT_TRUE(BuildF1(TaskOf(kernel, landmarks, FloatType::kFloat64)).ok()) << kernel;
  }
}

// (x·y + 1)² of columns of which two are 64 times smaller than the third: float32 keeps a
// part of its C(5, 2) = 10 dimensions. With its tail the factor spans them all, so that the
// coordinates of any rows have the kernel's values as inner products.
TEST(LandmarkMappingTest, TheTailOfAFactorSpansWhatFloat32CutsOff) {
  const auto rows_of = [](int64_t count, uint64_t seed) {
    Matrix<double> rows = Rows(count, 3, seed);
    for (int64_t i = 0; i < count; ++i) {
      rows(i, 1) /= 64;  // exact
      rows(i, 2) /= 64;
    }
    return rows;
  };
  const Matrix<double> landmarks = rows_of(40, 21);
  const Matrix<double> x = rows_of(15, 22);
  const LandmarkTask task = TaskOf("poly(degree=2, coef0=1)", landmarks, FloatType::kFloat32);
  LandmarkFactor factor = FactorLandmarks(task, NeverStop).value();
  Denormalise(factor);
  const int64_t r = factor.rank();
  const int64_t all = r + factor.tail.rank();
  EXPECT_LT(r, 10);
  EXPECT_EQ(all, 10);
  EXPECT_TRUE(factor.tail.ends_sharply);
  Matrix<double> values(all, x.rows());
  for (int64_t k = 0; k < all; ++k) {
    const double* const landmark = k < r ? factor.pivots.row(k) : factor.tail.pivots.row(k - r);
    for (int64_t j = 0; j < x.rows(); ++j) {
      values(k, j) = NaiveKernel(task.kernel.root(), landmark, x.row(j), 3);
    }
  }
  const Matrix<double> coordinates = CoordinatesOf(factor, std::move(values));
  double cut_off = 0;
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.rows(); ++j) {
      double whole = 0, of_pivots = 0;
      for (int64_t k = 0; k < all; ++k) {
        whole += coordinates(i, k) * coordinates(j, k);
        if (k < r) of_pivots = whole;
      }
      const double exact = NaiveKernel(task.kernel.root(), x.row(i), x.row(j), 3);
      EXPECT_NEAR(whole, exact, 1e-13 * 4);
      cut_off = std::max(cut_off, std::abs(of_pivots - exact));
    }
  }
  EXPECT_GT(cut_off, 1e-11);
}

TEST(LandmarkMappingTest, AFactorForFloat64HasNoTail) {
  const Matrix<double> landmarks = Rows(40, 3, 23);
  const LandmarkTask task = TaskOf("rbf(gamma=0.01)", landmarks, FloatType::kFloat64);
  const LandmarkFactor factor = FactorLandmarks(task, NeverStop).value();
  EXPECT_EQ(factor.tail.rank(), 0);
}

}  // namespace
}  // namespace phimap::testing
