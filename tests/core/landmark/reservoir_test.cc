#include "core/landmark/reservoir.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Row i of the stream is (i, −i, 2i).
Matrix<double> StreamRows(int64_t first, int64_t count) {
  Matrix<double> rows(count, 3);
  for (int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(first + i);
    rows(i, 0) = value;
    rows(i, 1) = -value;
    rows(i, 2) = 2 * value;
  }
  return rows;
}

Reservoir Sampled(int64_t capacity, int64_t stream_rows, uint64_t seed, int64_t block_rows) {
  Reservoir reservoir(capacity, 3, seed);
  for (int64_t first = 0; first < stream_rows; first += block_rows) {
    reservoir.Offer(StreamRows(first, std::min(block_rows, stream_rows - first)).view());
  }
  return reservoir;
}

std::vector<double> Row(const Reservoir& reservoir, int64_t slot) {
  std::vector<double> row(static_cast<size_t>(reservoir.columns()));
  reservoir.CopyRow(slot, row.data());
  return row;
}

std::vector<int64_t> KeptRows(const Reservoir& reservoir) {
  std::vector<int64_t> rows;
  for (int64_t slot = 0; slot < reservoir.size(); ++slot) {
    rows.push_back(reservoir.stream_row(slot));
  }
  return rows;
}

TEST(ReservoirTest, KeepsEveryRowInOrderUpToItsCapacity) {
  for (int64_t n : {0, 1, 2, 9, 10}) {
    const Reservoir reservoir = Sampled(10, n, 1, 4);
    std::vector<int64_t> expected(n);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(KeptRows(reservoir), expected);
    EXPECT_EQ(reservoir.rows_seen(), n);
  }
}

// A block of the reservoir has 256 KiB, which is 10,922 rows of three numbers. Some capacities are
// just below, at and above this size.
TEST(ReservoirTest, HoldsTheRowsThatItsIndicesName) {
  for (int64_t capacity : {1, 7, 10921, 10922, 10923, 30000}) {
    const Reservoir reservoir = Sampled(capacity, 50000, 3, 1234);
    ASSERT_EQ(reservoir.size(), capacity);
    for (int64_t slot = 0; slot < capacity; ++slot) {
      const double value = static_cast<double>(reservoir.stream_row(slot));
      ASSERT_EQ(Row(reservoir, slot)[0], value);
      ASSERT_EQ(Row(reservoir, slot)[1], -value);
      ASSERT_EQ(Row(reservoir, slot)[2], 2 * value);
    }
    std::vector<int64_t> rows = KeptRows(reservoir);
    std::sort(rows.begin(), rows.end());
    EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end());
  }
}

TEST(ReservoirTest, KeepsTheSameRowsInEveryForm) {
  Reservoir dense(40, 9, 5);
  Reservoir sparse(40, 9, 5, Reservoir::Form::kSparse);
  Reservoir slots(40, 1, 5, Reservoir::Form::kSlots);
  for (int64_t i = 0; i < 3000; ++i) {
    std::vector<double> row(9, 0.0);  // 0 to 9 nonzero numbers
    for (int64_t j = 0; j < i % 10; ++j) row[(i + 4 * j) % 9] = static_cast<double>(i + j + 1);
    for (Reservoir* reservoir : {&dense, &sparse, &slots}) {
      if (reservoir->RowsToSkip() > 0) {
        reservoir->Skip(1);
      } else {
        reservoir->Keep(row.data());
      }
    }
  }
  EXPECT_EQ(KeptRows(sparse), KeptRows(dense));
  EXPECT_EQ(KeptRows(slots), KeptRows(dense));
  for (int64_t slot = 0; slot < 40; ++slot) {
    EXPECT_EQ(Row(sparse, slot), Row(dense, slot));
    EXPECT_EQ(Row(slots, slot), std::vector<double>{static_cast<double>(slot)});
  }
}

TEST(ReservoirTest, DoesNotDependOnHowTheStreamIsCut) {
  const std::vector<int64_t> expected = KeptRows(Sampled(50, 5000, 9, 5000));
  for (int64_t block_rows : {1, 2, 49, 50, 51, 999}) {
    EXPECT_EQ(KeptRows(Sampled(50, 5000, 9, block_rows)), expected) << block_rows;
  }
}

TEST(ReservoirTest, NeverChangesForASeed) {
  EXPECT_THAT(KeptRows(Sampled(6, 1000, 42, 100)), ElementsAre(500, 141, 375, 14, 449, 428));
  EXPECT_NE(KeptRows(Sampled(6, 1000, 43, 100)), KeptRows(Sampled(6, 1000, 42, 100)));
}

TEST(ReservoirTest, GathersSlotsInTheOrderAsked) {
  const Reservoir reservoir = Sampled(10, 10, 1, 10);
  const Matrix<double> rows = reservoir.Gather({7, 0, 7});
  ASSERT_EQ(rows.rows(), 3);
  ASSERT_EQ(rows.cols(), 3);
  EXPECT_EQ(rows(0, 0), 7);
  EXPECT_EQ(rows(1, 1), 0);
  EXPECT_EQ(rows(2, 2), 14);
}

// Counts how often each of n rows is kept in T = kTrials independent trials. With capacity k, a row
// is kept with probability q = k/n. The count c_i of row i has mean Tq and variance Tq(1−q), and
// all counts sum to Tk. The statistic X = Σ_i (c_i − Tq)²/(Tq(1−q)) · (n−1)/n is nearly chi-square
// with n−1 degrees of freedom. So it has mean n−1 and variance 2(n−1). X may deviate by six
// standard deviations. Seeds are fixed.
TEST(ReservoirTest, EveryRowIsEquallyLikely) {
  constexpr int kTrials = 20000;
  for (int64_t capacity : {1, 5, 30}) {
    for (int64_t n : {31, 100, 400}) {
      std::vector<int> counts(n);
      for (int seed = 0; seed < kTrials; ++seed) {
        Reservoir reservoir(capacity, 1, seed);
        reservoir.Offer(Matrix<double>(n, 1).view());
        for (int64_t row : KeptRows(reservoir)) ++counts[row];
      }
      const double q = 1.0 * capacity / n;
      double chi_square = 0;
      for (int count : counts) chi_square += std::pow(count - kTrials * q, 2);
      chi_square *= (n - 1.0) / n / (kTrials * q * (1 - q));
      EXPECT_NEAR(chi_square, n - 1, 6 * std::sqrt(2.0 * (n - 1))) << capacity << " of " << n;
    }
  }
}

// Counts how often each of the C(n,2) = 435 pairs of rows is kept, for n = 30 rows and capacity k =
// 6. A pair is kept with probability q = k(k−1)/(n(n−1)), so each count is binomial. No count may
// be further from its mean than seven standard deviations. The probability that one is further is
// below 435·2.6e-12.
//
// The test also sums the squares of all standardised deviations. This sum has mean 435. Its
// variance is 2·803, which takes into account that counts of pairs are correlated. The correlation
// is 0.1123 for pairs that share a row and −0.0193 for pairs that do not. By the Johnson scheme,
// the correlation matrix has the eigenvalues 4.439 (29 times), 0.756 (405 times) and 0. The
// variance of the sum is twice the sum of their squares.
TEST(ReservoirTest, EveryPairIsEquallyLikely) {
  constexpr int kTrials = 40000;
  constexpr int64_t kRows = 30, kCapacity = 6;
  std::vector<int> counts(kRows * kRows);
  for (int seed = 0; seed < kTrials; ++seed) {
    Reservoir reservoir(kCapacity, 1, seed);
    reservoir.Offer(Matrix<double>(kRows, 1).view());
    const std::vector<int64_t> kept = KeptRows(reservoir);
    for (int64_t a : kept) {
      for (int64_t b : kept) counts[a * kRows + b] += a < b ? 1 : 0;
    }
  }
  const double q = 1.0 * kCapacity * (kCapacity - 1) / (kRows * (kRows - 1));
  const double deviation = std::sqrt(kTrials * q * (1 - q));
  const double pairs = kRows * (kRows - 1) / 2;
  double chi_square = 0;
  for (int64_t a = 0; a < kRows; ++a) {
    for (int64_t b = a + 1; b < kRows; ++b) {
      const double z = (counts[a * kRows + b] - kTrials * q) / deviation;
      EXPECT_LE(std::abs(z), 7) << a << " and " << b;
      chi_square += z * z;
    }
  }
  EXPECT_NEAR(chi_square, pairs, 6 * std::sqrt(2 * 803.0));
}

// After the first k rows (the capacity), row i is kept with probability k/i. If n rows are offered,
// the number of rows kept after the first k has mean k·(H_n − H_k), where H_n is the n-th harmonic
// number. Its variance is below this mean.
TEST(ReservoirTest, SkipsNearlyAllOfALongStream) {
  constexpr int64_t kCapacity = 1000, kRows = int64_t{1} << 62;
  Reservoir reservoir(kCapacity, 1, 5);
  int64_t kept = 0;
  while (reservoir.rows_seen() < kRows) {
    reservoir.Skip(std::min(reservoir.RowsToSkip(), kRows - reservoir.rows_seen()));
    if (reservoir.rows_seen() == kRows) break;
    const double value = static_cast<double>(reservoir.rows_seen());
    reservoir.Keep(&value);
    ++kept;
  }
  const double mean = kCapacity * std::log(1.0 * kRows / kCapacity);
  EXPECT_NEAR(static_cast<double>(kept - kCapacity), mean, 6 * std::sqrt(mean));
  // The kept rows are uniform over the stream. So the mean of their k relative positions has the
  // standard deviation 1/√(12k).
  double sum = 0;
  for (int64_t row : KeptRows(reservoir)) sum += static_cast<double>(row) / kRows;
  EXPECT_NEAR(sum / kCapacity, 0.5, 6 / std::sqrt(12.0 * kCapacity));
}

TEST(ReservoirTest, OneSlotSurvivesTheLongestStream) {
  for (int seed = 0; seed < 200; ++seed) {
    Reservoir reservoir(1, 1, seed);
    while (reservoir.rows_seen() < Reservoir::kMaxStreamRows) {
      const int64_t left = Reservoir::kMaxStreamRows - reservoir.rows_seen();
      const bool beyond = reservoir.RowsToSkip() >= left;
      ASSERT_GE(reservoir.RowsToSkip(), 0);
      reservoir.Skip(beyond ? left : reservoir.RowsToSkip());
      const double value = seed;
      if (!beyond) reservoir.Keep(&value);
    }
    EXPECT_EQ(reservoir.size(), 1);
  }
}

}  // namespace
}  // namespace phimap::testing
