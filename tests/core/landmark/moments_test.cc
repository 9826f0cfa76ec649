#include "core/landmark/moments.h"

#include <cmath>
#include <limits>

#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr double kU = 0x1p-53;

// Column j is offset[j] + scale[j] · normal.
struct Column {
  double offset;
  double scale;
};
constexpr Column kColumns[] = {{0, 1},      {1e8, 1},        {1e8, 1e-3}, {-1e12, 1},
                               {0, 1e-120}, {-1e120, 1e120}, {3, 1e6},    {1, 0}};
constexpr int64_t kWidth = sizeof(kColumns) / sizeof(kColumns[0]);

Matrix<double> BadlyScaledRows(int64_t n, uint64_t seed) {
  Matrix<double> rows(n, kWidth);
  const RandomStream stream(seed, StreamId::kProjection);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < kWidth; ++j) {
      rows(i, j) = kColumns[j].offset + kColumns[j].scale * stream.Normal(i * kWidth + j);
    }
  }
  return rows;
}

ColumnMoments MomentsOf(const Matrix<double>& rows) {
  ColumnMoments moments(rows.cols());
  moments.Add(rows.view());
  return moments;
}

// Moments by two passes in long double, which has 11 bits more than the code under test.
struct Exact {
  long double mean = 0;
  long double variance = 0;
};
Exact ExactMoments(const Matrix<double>& rows, int64_t column) {
  Exact exact;
  for (int64_t i = 0; i < rows.rows(); ++i) exact.mean += rows(i, column);
  exact.mean /= rows.rows();
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const long double deviation = rows(i, column) - exact.mean;
    exact.variance += deviation * deviation;
  }
  exact.variance /= rows.rows();
  return exact;
}

// The tolerances are the bounds in the header with two factors. κ is at most 5, because the first
// row is within 4.9 standard deviations of the mean. A factor of 4 replaces the constants that the
// header omits. The reference in long double has an error of 2^-64·n·|mean|/σ ≤ 2^-64·1e4·1e12,
// which is below the bound for these columns.
TEST(ColumnMomentsTest, AgreeWithTwoPassesInLongDoubleOnBadlyScaledColumns) {
  for (int64_t n : {1, 2, 3, 100, 10000}) {
    SCOPED_TRACE(n);
    const Matrix<double> rows = BadlyScaledRows(n, 4);
    const ColumnMoments moments = MomentsOf(rows);
    ASSERT_EQ(moments.count(), n);
    for (int64_t j = 0; j < kWidth; ++j) {
      SCOPED_TRACE(j);
      const Exact exact = ExactMoments(rows, j);
      const double variance = static_cast<double>(exact.variance);
      const double deviation = std::sqrt(variance);
      const double steps = static_cast<double>(n) * 5 * kU * 4;
      EXPECT_NEAR(moments.population_variance(j), variance, steps * variance);
      EXPECT_NEAR(moments.mean(j), static_cast<double>(exact.mean),
                  2 * kU * std::abs(static_cast<double>(exact.mean)) + steps * deviation);
    }
  }
}

TEST(ColumnMomentsTest, RangeIsExact) {
  const Matrix<double> rows = BadlyScaledRows(1000, 5);
  const ColumnMoments moments = MomentsOf(rows);
  for (int64_t j = 0; j < kWidth; ++j) {
    double low = rows(0, j), high = rows(0, j);
    for (int64_t i = 0; i < rows.rows(); ++i) {
      low = std::min(low, rows(i, j));
      high = std::max(high, rows(i, j));
    }
    EXPECT_EQ(moments.min(j), low);
    EXPECT_EQ(moments.max(j), high);
  }
}

TEST(ColumnMomentsTest, BitsDependNeitherOnBlocksNorOnNeighbours) {
  const Matrix<double> rows = BadlyScaledRows(1000, 6);
  const ColumnMoments whole = MomentsOf(rows);
  ColumnMoments cut(kWidth);
  for (int64_t i = 0, size = 0; i < rows.rows(); i += size) {
    size = std::min<int64_t>(i % 7 + 1, rows.rows() - i);
    cut.Add(rows.view().Rows(i, size));
  }
  for (int64_t j = 0; j < kWidth; ++j) {
    ColumnMoments alone(1);  // a strided view of one column, so no neighbours share its vectors
    alone.Add(rows.view().Block(0, j, rows.rows(), 1));
    EXPECT_EQ(cut.mean(j), whole.mean(j));
    EXPECT_EQ(cut.population_variance(j), whole.population_variance(j));
    EXPECT_EQ(alone.mean(0), whole.mean(j));
    EXPECT_EQ(alone.population_variance(0), whole.population_variance(j));
  }
}

// u = 2^-53. A column counts as constant if its range is at most 8u·max|x|. For max|x| = 1, this is
// 4 ulp.
TEST(ColumnMomentsTest, ConstantMeansNothingButRoundOffIsLeft) {
  struct {
    const char* claim;
    double a, b;
    bool constant;
  } const cases[] = {
      {"equal", 0.1, 0.1, true},
      {"zero", 0, 0, true},
      {"signed zeros", 0.0, -0.0, true},
      {"round-off of one sum", 0.3, 0.1 + 0.2, true},
      {"four ulp", 1, 1 + 8 * kU, true},
      {"nine ulp", 1, 1 + 18 * kU, false},
      {"neighbouring float32", 1, 1 - 0x1p-24, false},
      {"a tiny number among zeros", 0, 1e-100, false},
      {"variance below the smallest number", 0, 1e-300, false},
      {"large with small spread", 1e8, 1e8 + 1e-3, false},
      {"the largest numbers", 1e308, 1e308, true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.claim);
    Matrix<double> rows(1000, 1);
    for (int64_t i = 0; i < rows.rows(); ++i) rows(i, 0) = i == 500 ? c.b : c.a;
    const ColumnMoments moments = MomentsOf(rows);
    EXPECT_EQ(moments.IsConstant(0), c.constant);
    EXPECT_TRUE(std::isfinite(moments.StandardScale(0)));
    if (c.constant) {
      EXPECT_EQ(moments.StandardScale(0), 1);
    }
  }
}

// A column of equal numbers has variance 0, and its mean is exactly this number. (Summing 0.1 a
// thousand times and dividing by 1,000 would give a different number.)
TEST(ColumnMomentsTest, AConstantColumnIsItsOwnMean) {
  Matrix<double> rows(1000, 1);
  for (int64_t i = 0; i < rows.rows(); ++i) rows(i, 0) = 0.1;
  EXPECT_EQ(MomentsOf(rows).mean(0), 0.1);
  EXPECT_EQ(MomentsOf(rows).population_variance(0), 0);
}

// Scaling a column by a power of two is exact, so its deviation scales by exactly the same factor.
// This holds although variances from 2^-1100 down are 0 in float64. In the second part of the test,
// a 0 in the second row is replaced by a tiny number, which must not change the deviation.
TEST(ColumnMomentsTest, DeviationsScaleWithTheColumnWhereVariancesUnderflow) {
  const RandomStream stream(4, StreamId::kProjection);
  constexpr int64_t kRows = 500;
  Matrix<double> base(kRows, 1);
  for (int64_t i = 0; i < kRows; ++i) base(i, 0) = 3 + stream.Normal(static_cast<uint64_t>(i));
  const ColumnMoments expected = MomentsOf(base);
  ASSERT_NEAR(expected.deviation(0), 1, 0.2);
  for (const int exponent : {-900, -700, -530, -400, 0, 400, 500}) {
    SCOPED_TRACE(exponent);
    const double factor = std::ldexp(1.0, exponent);
    Matrix<double> rows(kRows, 1);
    for (int64_t i = 0; i < kRows; ++i) rows(i, 0) = base(i, 0) * factor;
    const ColumnMoments moments = MomentsOf(rows);
    EXPECT_FALSE(moments.IsConstant(0));
    EXPECT_EQ(moments.mean(0), expected.mean(0) * factor);
    EXPECT_EQ(moments.deviation(0), expected.deviation(0) * factor);
    EXPECT_EQ(moments.StandardScale(0), expected.StandardScale(0) / factor);
    EXPECT_EQ(moments.population_variance(0), expected.population_variance(0) * factor * factor);
  }
  for (const double first : {1e-300, -1e-160, 1e-20}) {
    SCOPED_TRACE(first);
    Matrix<double> rows(kRows, 1);
    for (int64_t i = 2; i < kRows; ++i) rows(i, 0) = base(i, 0);
    const double deviation = MomentsOf(rows).deviation(0);
    rows(1, 0) = first;
    EXPECT_NEAR(MomentsOf(rows).deviation(0), deviation, 1e-13);
  }
}

// The scaling factor is 1/σ, which must be finite.
TEST(ColumnMomentsTest, AColumnThatNoFactorScalesIsAnErrorThatNamesIt) {
  Matrix<double> rows(2, 3);
  rows(0, 2) = 1e-310;
  EXPECT_TRUE(MomentsOf(rows).CheckFinite().ok());
  const absl::Status status = MomentsOf(rows).CheckScales();
  EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "VALUES_TOO_SMALL"));
  EXPECT_EQ(DetailOf(status)->metadata.at("column"), "2");
  rows(0, 2) = 1e-300;
  EXPECT_TRUE(MomentsOf(rows).CheckScales().ok());
}

TEST(ColumnMomentsTest, OverflowIsAnErrorThatNamesTheColumn) {
  Matrix<double> rows(2, 3);
  EXPECT_TRUE(MomentsOf(rows).CheckFinite().ok());
  rows(0, 1) = 1e200;
  rows(1, 1) = -1e200;
  const absl::Status status = MomentsOf(rows).CheckFinite();
  EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "VALUES_TOO_LARGE"));
  EXPECT_EQ(DetailOf(status)->metadata.at("column"), "1");
}

// The expected value is the variance of all entries as one list. u is the unit round-off, and κ <=
// 5 is defined in the header. The tolerance is 4·(n·κ·u + (columns + 4)·u). The first term is the
// error of the columns' moments.
TEST(EntryVarianceTest, IsThePopulationVarianceOfAllEntries) {
  Matrix<double> rows(500, 4);
  const RandomStream stream(8, StreamId::kProjection);
  for (int64_t k = 0; k < rows.size(); ++k) {
    rows.data()[k] = 1000 + static_cast<double>(k % 4) * (3 + stream.Normal(k));
  }
  long double mean = 0, variance = 0;
  for (int64_t k = 0; k < rows.size(); ++k) mean += rows.data()[k];
  mean /= rows.size();
  for (int64_t k = 0; k < rows.size(); ++k) variance += std::pow(rows.data()[k] - mean, 2);
  variance /= rows.size();
  const double expected = static_cast<double>(variance);
  EXPECT_NEAR(EntryVariance(MomentsOf(rows), false), expected, (500 * 5 + 8) * 4 * kU * expected);
}

TEST(EntryVarianceTest, AfterStandardisationIsTheShareOfVaryingColumns) {
  const Matrix<double> rows = BadlyScaledRows(100, 9);  // the last column is constant
  const ColumnMoments moments = MomentsOf(rows);
  EXPECT_EQ(EntryVariance(moments, true), 7.0 / 8);
  // The value is also the variance of the entries of standardised rows.
  long double sum_squares = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < kWidth; ++j) {
      const double z = (rows(i, j) - moments.mean(j)) * moments.StandardScale(j);
      sum_squares += static_cast<long double>(z) * z;
    }
  }
  // Column 3 is −1e12 plus noise of deviation 1. float64 represents its mean only to within 2^-14.
  // This causes a relative error of (2^-14)² in its variance.
  EXPECT_NEAR(static_cast<double>(sum_squares / rows.size()), 7.0 / 8, 1e-8);
}

TEST(EntryVarianceTest, IsZeroWhenAllEntriesAreEqual) {
  const Matrix<double> rows(10, 3);
  EXPECT_EQ(EntryVariance(MomentsOf(rows), false), 0);
  EXPECT_EQ(EntryVariance(MomentsOf(rows), true), 0);
}

}  // namespace
}  // namespace phimap::testing
