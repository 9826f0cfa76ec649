// A version that serves rows of its own stream, of which its landmarks are a part.
#include "core/drift/sequential_test.h"
#include "gtest/gtest.h"
#include "tests/core/drift/resampled_rows.h"

namespace phimap::testing {
namespace {

// Of a narrow kernel most rows are far from the span of the landmarks, and the landmarks are in it.
TEST(DriftOfOwnRowsTest, LandmarksAreNotTestedAndWouldRaiseAnAlarm) {
  const BuiltData data("letter.csv", "f2(landmarks=2000)", "matern(nu=0.5, length_scale=1)");
  ASSERT_EQ(data.reference->scores.functions[0].kind, ScoreKind::kResidualShare);
  SequentialTest without(*data.reference, {});
  SequentialTest with(*data.reference, {});
  RandomCursor random(RandomStream(1, StreamId::kLabRows));
  constexpr int64_t kRows = 9000;
  int64_t landmarks = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    const double* const scores = data.scores.row(data.Draw(random));
    with.Add(scores);
    if (data.reference->IsLandmark(scores)) {
      ++landmarks;
    } else {
      without.Add(scores);
    }
  }
  // Some rows of the file are there several times.
  const double share = 2000.0 / static_cast<double>(data.rows.rows());
  EXPECT_GT(landmarks, 0.9 * share * kRows);
  EXPECT_LT(landmarks, 1.4 * share * kRows);
  EXPECT_LT(without.largest_evidence(), 1);
  EXPECT_GE(with.largest_evidence(), 1);
}

// Of a kernel of few dimensions all rows are in the span, and none is taken for a landmark.
TEST(DriftOfOwnRowsTest, RowsWithinTheSpanAreTestedWhereAllAre) {
  const BuiltData data("letter.csv", "f2(landmarks=200)", "poly(degree=2, gamma=0.1, coef0=1)");
  for (int64_t i = 0; i < data.rows.rows(); ++i) {
    ASSERT_FALSE(data.reference->IsLandmark(data.scores.row(i))) << "row " << i;
  }
}

}  // namespace
}  // namespace phimap::testing
