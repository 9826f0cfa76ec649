#include "core/drift/drift_monitor.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/drift/reference_making.h"
#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kColumns = 4;

// A reference of 500 N(0, 1) rows whose features are the rows themselves. The ranges are ±2.
std::shared_ptr<const DriftReference> MakeNormalReference() {
  UseOneBlasThread();
  const int64_t rows = 500;
  const Matrix<double> choosing = NormalRows({.rows = 512, .cols = kColumns, .seed = 1});
  const Matrix<double> held_out = NormalRows({.rows = rows, .cols = kColumns, .seed = 2});
  DriftReference reference =
      *MakeDriftReference({.choosing = {WireRows(choosing), WireRows(choosing)},
                           .held_out = {WireRows(held_out), WireRows(held_out)},
                           .has_columns = true});
  reference.stream_rows = 10'000;
  reference.low.assign(kColumns, -2);
  reference.high.assign(kColumns, 2);
  return std::make_shared<const DriftReference>(std::move(reference));
}

const std::shared_ptr<const DriftReference>& NormalReference() {
  static const auto& reference = *new std::shared_ptr<const DriftReference>(MakeNormalReference());
  return reference;
}

// Adds N(0, 1) rows with `shift` added to column 2.
void AddRows(DriftMonitor& monitor, int64_t rows, double shift, RandomCursor& random) {
  for (int64_t i = 0; i < rows; ++i) {
    Matrix<double> row(1, kColumns);
    for (int64_t j = 0; j < kColumns; ++j) row(0, j) = random.Normal() + (j == 2 ? shift : 0);
    monitor.Add(ScoreRow(monitor.reference(), WireRows(row), WireRows(row), nullptr));
  }
}

TEST(DriftMonitorTest, TheSizeOfAShiftIsItsLength) {
  RandomCursor random(RandomStream(1, StreamId::kLabRows));
  DriftMonitor monitor(NormalReference(), {.restart_rows = 2000});
  AddRows(monitor, 99, 1.5, random);
  EXPECT_FALSE(monitor.size().has_value());
  AddRows(monitor, 1901, 1.5, random);
  ASSERT_TRUE(monitor.size().has_value());
  // The means of 500 and 2,000 rows have deviations of 0.045 and 0.022 in each column.
  EXPECT_NEAR(std::sqrt(monitor.size()->squared_mmd), 1.5, 5 * std::hypot(0.045, 0.022));
  EXPECT_NEAR(monitor.size()->scale, std::sqrt(kColumns), 0.1);
}

// Without a shift the mean of MMD² less its expectation is 0. Clipped at 0, its mean is positive
// and smaller than what was subtracted.
TEST(DriftMonitorTest, WithoutAShiftTheSizeIsWhatChanceExplains) {
  double sum = 0;
  constexpr int kRuns = 40;
  for (int run = 0; run < kRuns; ++run) {
    RandomCursor random(RandomStream(100 + run, StreamId::kLabRows));
    DriftMonitor monitor(NormalReference(), {});
    AddRows(monitor, 300, 0, random);
    sum += monitor.size()->squared_mmd;
  }
  const double subtracted = kColumns * (1.0 / 300 + 1.0 / 500);
  EXPECT_LT(sum / kRuns, subtracted);
  EXPECT_GT(sum, 0);
}

TEST(DriftMonitorTest, ColumnsBeyondTheirRangeAreNamedWorstFirst) {
  RandomCursor random(RandomStream(3, StreamId::kLabRows));
  DriftMonitor monitor(NormalReference(), {});
  AddRows(monitor, 4000, 1, random);
  const std::vector<ColumnBeyond> worst = monitor.beyond(2);
  ASSERT_EQ(worst.size(), 2u);
  EXPECT_EQ(worst[0].column, 2);
  // P(|N(1, 1)| > 2) = P(N > 1) + P(N < −3) = 0.1587 + 0.0013, P(|N(0, 1)| > 2) = 0.0455; six
  // deviations of 4,000 rows.
  EXPECT_NEAR(worst[0].share, 0.16, 6 * std::sqrt(0.16 * 0.84 / 4000));
  EXPECT_NEAR(worst[1].share, 0.0455, 6 * std::sqrt(0.0455 / 4000) + 0.005);
  EXPECT_NEAR(monitor.share_beyond(), (0.16 + 3 * 0.0455) / 4, 0.01);
  EXPECT_DOUBLE_EQ(monitor.expected_beyond(), 2.0 / 10'001);
}

TEST(DriftMonitorTest, ARowThatIsNotFiniteIsCountedAndChangesNothing) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan(""), 1e200}) {
    RandomCursor random(RandomStream(4, StreamId::kLabRows));
    DriftMonitor monitor(NormalReference(), {});
    AddRows(monitor, 200, 0, random);
    const double evidence = monitor.test().largest_evidence();
    const double size = monitor.size()->squared_mmd;
    Matrix<double> row(1, kColumns);
    row(0, 1) = bad;  // the square of 1e200 is infinite
    monitor.Add(ScoreRow(monitor.reference(), WireRows(row), WireRows(row), nullptr));
    EXPECT_EQ(monitor.rows_not_finite(), 1);
    EXPECT_EQ(monitor.test().rows(), 200);
    EXPECT_EQ(monitor.counted_rows(), 200);
    EXPECT_EQ(monitor.test().largest_evidence(), evidence);
    EXPECT_EQ(monitor.size()->squared_mmd, size);
  }
}

// The figures are of the last two restarts, as the evidence is.
TEST(DriftMonitorTest, FiguresForgetWhatIsOld) {
  RandomCursor random(RandomStream(5, StreamId::kLabRows));
  DriftMonitor monitor(NormalReference(), {.rows = 1000, .restart_rows = 500});
  AddRows(monitor, 500, 3, random);
  EXPECT_GE(monitor.test().largest_evidence(), 1);
  AddRows(monitor, 1000, 0, random);
  AddRows(monitor, 1, 0, random);
  EXPECT_EQ(monitor.counted_rows(), 501);
  EXPECT_LT(monitor.test().largest_evidence(), 1);
  EXPECT_LT(monitor.size()->squared_mmd, 0.1);
}

}  // namespace
}  // namespace phimap::testing
