#include "core/mapping/projection/random_projection.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr ProjectionKind kKinds[] = {ProjectionKind::kGaussian, ProjectionKind::kSign,
                                     ProjectionKind::kSparse, ProjectionKind::kOrthonormal};

// Returns the matrix R itself, which consists of the rows of the plan.
Matrix<double> MatrixOf(ProjectionKind kind, int64_t dimensions, int64_t columns, uint64_t seed) {
  UseOneBlasThread();
  const InputStage input{.columns = columns};
  const PlanPair plans =
      BuildRandomProjection({.input = input, .serving_type = FloatType::kFloat64}, 1,
                            {.kind = kind, .dimensions = dimensions, .seed = seed}, NeverStop)
          .value();
  return std::get<ProductFeatures<double>>(std::get<1>(plans.served.stages).features).rows.Clone();
}

TEST(RandomProjectionTest, EntriesAreThoseOfTheFrozenStreams) {
  constexpr int64_t kRows = 9;
  constexpr int64_t kColumns = 5;
  constexpr uint64_t kSeed = 77;
  const double root = std::sqrt(1.0 * kRows);
  const RandomStream normals(kSeed, StreamId::kProjection);
  const RandomStream coins(kSeed, StreamId::kSignProjection);
  const RandomStream dice(kSeed, StreamId::kSparseProjection);
  const Matrix<double> gaussian = MatrixOf(ProjectionKind::kGaussian, kRows, kColumns, kSeed);
  const Matrix<double> sign = MatrixOf(ProjectionKind::kSign, kRows, kColumns, kSeed);
  const Matrix<double> sparse = MatrixOf(ProjectionKind::kSparse, kRows, kColumns, kSeed);
  for (uint64_t i = 0; i < kRows * kColumns; ++i) {
    EXPECT_NEAR(gaussian.data()[i], normals.Normal(i) / root, 1e-15);
    EXPECT_NEAR(sign.data()[i], (coins.UniformBelow(i, 2) == 0 ? 1 : -1) / root, 1e-15);
    const uint64_t die = dice.UniformBelow(i, 6);
    const double expected = die == 0 ? std::sqrt(3.0) : die == 1 ? -std::sqrt(3.0) : 0;
    EXPECT_NEAR(sparse.data()[i], expected / root, 1e-15);
  }
}

// The test counts how many of n independent entries have a value of probability p. A count may
// deviate by six standard deviations, 6·√(n·p·(1−p)). The seed is fixed.
TEST(RandomProjectionTest, EntriesHaveTheirProbabilities) {
  constexpr int64_t kEntries = 200 * 300;
  const auto share = [](const Matrix<double>& r, double low, double high) {
    int64_t count = 0;
    for (int64_t i = 0; i < r.size(); ++i) count += r.data()[i] > low && r.data()[i] < high;
    return static_cast<double>(count) / kEntries;
  };
  const auto expect = [&](const Matrix<double>& r, double low, double high, double p) {
    EXPECT_NEAR(share(r, low, high), p, 6 * std::sqrt(p * (1 - p) / kEntries)) << low;
  };
  const Matrix<double> sign = MatrixOf(ProjectionKind::kSign, 200, 300, 3);
  expect(sign, 0, 1, 0.5);
  EXPECT_EQ(share(sign, -1, 1), 1);
  const Matrix<double> sparse = MatrixOf(ProjectionKind::kSparse, 200, 300, 3);
  expect(sparse, 1e-9, 1, 1.0 / 6);
  expect(sparse, -1, -1e-9, 1.0 / 6);
  const Matrix<double> gaussian = MatrixOf(ProjectionKind::kGaussian, 200, 300, 3);
  const double sigma = 1 / std::sqrt(200.0);
  expect(gaussian, -sigma, sigma, 0.6826894921);
}

TEST(RandomProjectionTest, OrthonormalRowsAreOrthonormalUpToTheScale) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 40}, {7, 40}, {40, 40}, {200, 200}, {150, 301}}) {
    const Matrix<double> r = MatrixOf(ProjectionKind::kOrthonormal, rows, columns, 5);
    const Matrix<double> gram = NaiveGram(r, r);
    const double square = static_cast<double>(columns) / static_cast<double>(rows);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < rows; ++j) {
        // Each entry has an error of n·2⁻⁵³, where n <= 301 is the number of terms. The tolerance
        // also covers the rounding of the test's own sums.
        ASSERT_NEAR(gram(i, j) / square, i == j ? 1 : 0, 1e-12) << rows << "×" << columns;
      }
    }
  }
}

// Tests entries of Haar matrices, that is, uniformly random orthogonal n×n matrices. Each entry is
// one coordinate of a uniform point on the sphere. So it has mean 0, variance 1/n and fourth moment
// 3/(n(n+2)). The means over 4,000 matrices may deviate by six standard deviations.
TEST(RandomProjectionTest, OrthonormalRowsAreUniformOnTheSphere) {
  constexpr int kMatrices = 4000;
  constexpr int64_t kSize = 3;
  constexpr double kSquare = 1.0 / kSize;
  constexpr double kFourth = 3.0 / (kSize * (kSize + 2));
  UseOneBlasThread();
  for (int64_t place = 0; place < kSize * kSize; ++place) {
    double mean = 0;
    double square = 0;
    for (int m = 0; m < kMatrices; ++m) {
      Matrix<double> q(kSize, kSize);
      ASSERT_TRUE(
          FillOrthonormalRows(9, static_cast<uint64_t>(m) * kSize * kSize, q.view(), NeverStop)
              .ok());
      mean += q.data()[place] / kMatrices;
      square += q.data()[place] * q.data()[place] / kMatrices;
    }
    EXPECT_NEAR(mean, 0, 6 * std::sqrt(kSquare / kMatrices)) << place;
    EXPECT_NEAR(square, kSquare, 6 * std::sqrt((kFourth - kSquare * kSquare) / kMatrices)) << place;
  }
}

// Compares the mean of ⟨Rx, Ry⟩ over S seeds with x·y. R has k rows, and r stands for an entry of R
// that is scaled to variance 1. ⟨Rx, Ry⟩ is the mean of k terms, one for each row, with mean x·y
// each. If the rows are independent, a term has the variance ‖x‖²‖y‖² + (x·y)² + (E r⁴ − 3)Σ_j
// x_j²y_j². The fourth moment E r⁴ is 3 for Gaussian and sparse entries and 1 for signs.
// Orthonormal rows give negatively correlated terms, so the variance is not larger. The mean may
// deviate by six standard deviations, √(variance/(kS)) each. Seeds are fixed.
TEST(RandomProjectionTest, InnerProductsAreUnbiasedWithTheVarianceOfTheLaw) {
  constexpr int64_t kColumns = 12;
  constexpr int64_t kDimensions = 6;
  constexpr int kSeeds = 3000;
  const Matrix<double> x = NormalRows({.rows = 4, .cols = kColumns, .seed = 21});
  const Matrix<double> exact = NaiveGram(x, x);
  for (const ProjectionKind kind : kKinds) {
    Matrix<double> mean(4, 4);
    for (int seed = 0; seed < kSeeds; ++seed) {
      const Matrix<double> f = NaiveGram(x, MatrixOf(kind, kDimensions, kColumns, seed));
      const Matrix<double> gram = NaiveGram(f, f);
      for (int64_t i = 0; i < 16; ++i) mean.data()[i] += gram.data()[i] / kSeeds;
    }
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        const double variance = exact(i, i) * exact(j, j) + exact(i, j) * exact(i, j);
        EXPECT_NEAR(mean(i, j), exact(i, j), 6 * std::sqrt(variance / (kDimensions * kSeeds)))
            << static_cast<int>(kind) << " " << i << ", " << j;
      }
    }
  }
}

TEST(RandomProjectionTest, ABuildMapsRowsByItsMatrixInEitherType) {
  const Matrix<double> x = NormalRows({.rows = 300, .cols = 20, .seed = 4});
  for (const char* kind : {"gaussian", "sign", "sparse", "orthonormal"}) {
    for (const char* type : {"float32", "float64"}) {
      const BuiltVersion built =
          MustBuild(SpecOf(std::string("random_projection(dimensions=15, projection=") + kind +
                               ", serving_type=" + type + ")",
                           "4*linear()"),
                    x);
      EXPECT_EQ(built.output_columns, 15);
      const Matrix<double> f = FeaturesFrom(built, x);
      const ProjectionKind projection = MappingSpec::Parse(built.provenance.spec_text)->projection;
      // The kernel's factor 4 doubles every feature. The tolerance is for sums of 20 products of
      // size 1.
      const Matrix<double> expected = NaiveGram(x, MatrixOf(projection, 15, 20, 1));
      for (int64_t i = 0; i < f.size(); ++i) {
        ASSERT_NEAR(f.data()[i], 2 * expected.data()[i], 1e-5) << kind << " " << type;
      }
    }
  }
}

TEST(RandomProjectionTest, CertificateNamesTheTheoremWithItsNumbersAndMeasuresTheKernel) {
  const Matrix<double> x = NormalRows({.rows = 2000, .cols = 30, .seed = 6});
  const BuiltVersion built = MustBuild(SpecOf("random_projection(dimensions=400)", "linear()"), x);
  const Certificate& certificate = built.certificate;
  EXPECT_EQ(certificate.landmarks, 0);
  EXPECT_EQ(certificate.pool_rows, 0);
  EXPECT_EQ(certificate.held_out_rows, 200);
  EXPECT_EQ(certificate.policy, "");
  EXPECT_FALSE(certificate.rank.has_value());
  EXPECT_THAT(certificate.theorem, HasSubstr("Balcan, Blum, Vempala 2006, Theorem 2"));
  // The bound e is the solution of 2·exp(−200(e²/2 − e³/3)) = 0.05, which is 0.2057.
  EXPECT_THAT(certificate.theorem, HasSubstr("e = 0.21 for one vector"));
  ASSERT_TRUE(certificate.kernel_error.has_value());
  // The mean error of a pair is about √(2/π)·‖x‖‖y‖/√k with k dimensions, here 30·0.8/20 = 1.2.
  EXPECT_GT(certificate.kernel_error->mean, 0.6);
  EXPECT_LT(certificate.kernel_error->mean, 2.4);
  EXPECT_LE(certificate.serving_error->max / certificate.serving_error->scale, 1e-6);
}

TEST(RandomProjectionTest, OneRowIsEnoughToBuildFrom) {
  const Matrix<double> x = NormalRows({.rows = 1, .cols = 8, .seed = 7});
  EXPECT_EQ(MustBuild(SpecOf("random_projection(dimensions=3)", "linear()"), x).output_columns, 3);
  const absl::Status empty =
      Build(SpecOf("random_projection(dimensions=3)", "linear()"), Matrix<double>(0, 8)).status();
  EXPECT_EQ(ReasonOf(empty), "STREAM_EMPTY");
  EXPECT_THAT(std::string(empty.message()), HasSubstr("at least 1"));
}

TEST(RandomProjectionTest, MoreOrthonormalRowsThanColumnsAreRefused) {
  const Matrix<double> x = NormalRows({.rows = 50, .cols = 8, .seed = 8});
  EXPECT_THAT(
      Build(SpecOf("random_projection(dimensions=9, projection=orthonormal)", "linear()"), x)
          .status(),
      IsError(StatusCode::kFailedPrecondition, "DIMENSIONS_TOO_MANY", "dimensions"));
}

}  // namespace
}  // namespace phimap::testing
