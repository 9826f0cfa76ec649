// Tests that a long request yields to other requests after each quantum.
#include <memory>
#include <numeric>
#include <vector>

#include "core/status/error.h"
#include "tests/server/schedule/scheduler_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

// long_engine_ takes a whole quantum for each tile of 64 rows.
class TransformQuantumTest : public SchedulerFixture {
 protected:
  TransformQuantumTest() {
    long_engine_->before = [this](absl::Span<const TransformPart> parts) {
      ++tiles_;
      rows_of_tiles_.push_back(parts[0].rows.rows());
      now_ += kWorkerQuantum;
    };
  }

  // Returns 90 rows, which are computed as two tiles.
  static std::vector<double> LongRows() {
    std::vector<double> rows(90);
    std::iota(rows.begin(), rows.end(), 1.0);
    return rows;
  }

  const std::shared_ptr<FakeEngine> long_engine_ = std::make_shared<FakeEngine>(1'000'000);
  const std::shared_ptr<FakeEngine> engine_ = std::make_shared<FakeEngine>();
  int tiles_ = 0;
  std::vector<int64_t> rows_of_tiles_;
};

TEST_F(TransformQuantumTest, ARowOfAnotherVersionWaitsForOneQuantumOfALongRequest) {
  Request large{.rows = LongRows()};
  Request small{.rows = {7}};
  scheduler_.Submit(Work(large, long_engine_));
  scheduler_.Submit(Work(small, engine_));
  scheduler_.RunOne(scratch_);
  EXPECT_EQ(large.done, 0);
  scheduler_.RunOne(scratch_);
  EXPECT_EQ(small.done, 1);
  EXPECT_THAT(small.features, ElementsAre(14));
  EXPECT_EQ(large.done, 0);
  scheduler_.RunOne(scratch_);
  EXPECT_EQ(large.done, 1);
  EXPECT_TRUE(large.status.ok()) << large.status;
  EXPECT_EQ(large.prepared, 1);
  EXPECT_THAT(rows_of_tiles_, ElementsAre(64, 26));
  for (size_t i = 0; i < large.rows.size(); ++i) {
    ASSERT_EQ(large.features[i], 2 * large.rows[i]) << i;
  }
}

TEST_F(TransformQuantumTest, SoDoesOneOfTheSameVersion) {
  Request large{.rows = LongRows()};
  Request small{.rows = {7}};
  scheduler_.Submit(Work(large, long_engine_));
  scheduler_.Submit(Work(small, long_engine_));
  scheduler_.RunOne(scratch_);
  EXPECT_EQ(large.done + small.done, 0);
  scheduler_.RunOne(scratch_);
  EXPECT_EQ(small.done, 1);
  RunAll();
  EXPECT_EQ(large.done, 1);
  EXPECT_EQ(large.features[89], 180);
}

TEST_F(TransformQuantumTest, WithoutOthersALongRequestIsNotCut) {
  Request large{.rows = LongRows()};
  scheduler_.Submit(Work(large, long_engine_));
  scheduler_.RunOne(scratch_);
  EXPECT_EQ(large.done, 1);
  EXPECT_EQ(tiles_, 2);
}

TEST_F(TransformQuantumTest, AnErrorAfterAQuantumNamesTheRowOfTheRequest) {
  Request large{.rows = LongRows()};
  Request small{.rows = {7}};
  long_engine_->overflows = 70;  // the value of row 69
  scheduler_.Submit(Work(large, long_engine_));
  scheduler_.Submit(Work(small, engine_));
  RunAll();
  EXPECT_THAT(large.status, IsError(Code::kOutOfRange, _, _, "examples.dense.rows[69]: too large"));
  EXPECT_TRUE(small.status.ok());
}

TEST_F(TransformQuantumTest, ARequestCancelledBetweenQuantaIsDroppedAndLeavesNothing) {
  Request large{.rows = LongRows()};
  Request small{.rows = {7}};
  scheduler_.Submit(Work(large, long_engine_));
  scheduler_.Submit(Work(small, engine_));
  scheduler_.RunOne(scratch_);
  large.cancelled = true;
  RunAll();
  EXPECT_EQ(large.done, 1);
  EXPECT_EQ(large.status.code(), Code::kCancelled);
  EXPECT_EQ(tiles_, 1);
  EXPECT_FALSE(scheduler_.TransformsPending());
}

TEST_F(TransformQuantumTest, ARequestOfSeveralQuantaWaitedOnceAndCountsOnce) {
  Request large{.rows = LongRows()};
  Request small{.rows = {7}};
  scheduler_.Submit(Work(large, long_engine_));
  scheduler_.Submit(Work(small, engine_));
  RunAll();
  const auto waits = metrics_.transform().queue_seconds->Collect().histogram;
  EXPECT_EQ(waits.sample_count, 2);
  // The small request waited for one quantum of the long request. The long request did not wait,
  // because its first quantum began at once.
  EXPECT_DOUBLE_EQ(waits.sample_sum, absl::ToDoubleSeconds(kWorkerQuantum));
}

// A call that has reached its deadline is also cancelled. It counts as late, not as given up by the
// client.
TEST_F(TransformQuantumTest, ACallThatIsCancelledAtItsDeadlineMissedIt) {
  Request late{.rows = {1}};
  Request given_up{.rows = {1}};
  for (Request* request : {&late, &given_up}) {
    TransformWork work = Work(*request, engine_);
    work.deadline = now_ + absl::Seconds(request == &late ? 1 : 2);
    request->cancelled = true;
    scheduler_.Submit(std::move(work));
  }
  now_ += absl::Seconds(1);
  RunAll();
  EXPECT_EQ(late.status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(given_up.status.code(), Code::kCancelled);
  EXPECT_EQ(metrics_.transform().dropped[static_cast<int>(Drop::kDeadline)]->Value(), 1);
  EXPECT_EQ(metrics_.transform().dropped[static_cast<int>(Drop::kCancelled)]->Value(), 1);
}

}  // namespace
}  // namespace phimap::testing
