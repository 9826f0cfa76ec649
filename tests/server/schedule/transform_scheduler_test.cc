#include "server/schedule/transform_scheduler.h"

#include <atomic>
#include <deque>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/schedule/compute_pool.h"
#include "tests/server/schedule/scheduler_fixture.h"
#include "tests/server/support/gate.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

using TransformSchedulerTest = SchedulerFixture;

TEST_F(TransformSchedulerTest, ComputesWhatWasSubmitted) {
  Request request{.rows = {1, 2, 3}};
  scheduler_.Submit(Work(request, std::make_shared<FakeEngine>()));
  EXPECT_EQ(request.done, 0);
  EXPECT_TRUE(scheduler_.RunOne(scratch_));
  EXPECT_EQ(request.done, 1);
  EXPECT_TRUE(request.status.ok()) << request.status;
  EXPECT_THAT(request.features, ElementsAre(2, 4, 6));
  EXPECT_FALSE(scheduler_.RunOne(scratch_));
}

TEST_F(TransformSchedulerTest, ABatchIsComputedByWhoeverBringsIt) {
  std::deque<Request> requests(3);
  const auto engine = std::make_shared<FakeEngine>();
  std::vector<QueuedWork> batch;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].rows = {static_cast<double>(i)};
    batch.push_back(*scheduler_.Accept(Work(requests[i], engine)));
  }
  EXPECT_TRUE(scheduler_.TransformsPending());
  EXPECT_FALSE(scheduler_.RunOne(scratch_));  // the batch is not left to a worker
  scheduler_.RunBatch(std::move(batch), scratch_);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].done, 1);
    EXPECT_THAT(requests[i].features, ElementsAre(2.0 * i));
  }
  EXPECT_FALSE(scheduler_.TransformsPending());
}

TEST_F(TransformSchedulerTest, ABatchComesBackWhenNoWorkerSleeps) {
  Request request{.rows = {1}};
  std::vector<QueuedWork> batch;
  batch.push_back(*scheduler_.Accept(Work(request, std::make_shared<FakeEngine>())));
  batch = scheduler_.HandOver(std::move(batch));
  ASSERT_EQ(batch.size(), 1);
  scheduler_.RunBatch(std::move(batch), scratch_);
  EXPECT_EQ(request.done, 1);
}

TEST_F(TransformSchedulerTest, EstimatesByWhatWasMeasuredOfTheVersion) {
  // The engine really takes 10 µs for 100,000 multiplications.
  const auto engine = std::make_shared<FakeEngine>(100'000);
  engine->before = [&](auto) { now_ += absl::Microseconds(10); };
  Request first{.rows = {1}};
  Request second{.rows = {1, 2, 3}};
  // As long as nothing has been measured, each multiplication is assumed to take a nanosecond.
  EXPECT_EQ(scheduler_.Estimate(Work(first, engine)), absl::Microseconds(100));
  scheduler_.Submit(Work(first, engine));
  RunAll();
  EXPECT_NEAR(absl::ToDoubleMicroseconds(scheduler_.Estimate(Work(second, engine))), 30, 0.01);
}

TEST_F(TransformSchedulerTest, DropsCancelledAndExpiredWorkBeforeItCostsAnything) {
  Request cancelled{.rows = {1}};
  Request expired{.rows = {1}};
  scheduler_.Submit(Work(cancelled, std::make_shared<FakeEngine>()));
  TransformWork late = Work(expired, std::make_shared<FakeEngine>());
  late.deadline = now_ + absl::Seconds(1);
  scheduler_.Submit(std::move(late));
  cancelled.cancelled = true;
  now_ += absl::Seconds(1);
  RunAll();
  EXPECT_EQ(cancelled.status.code(), Code::kCancelled);
  EXPECT_EQ(expired.status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(cancelled.prepared + expired.prepared, 0);
  EXPECT_EQ(metrics_.transform().dropped[static_cast<int>(Drop::kCancelled)]->Value(), 1);
  EXPECT_EQ(metrics_.transform().dropped[static_cast<int>(Drop::kDeadline)]->Value(), 1);
}

TEST_F(TransformSchedulerTest, LooksAtCancellationBetweenTiles) {
  // The first tile has 64 rows. The request is cancelled meanwhile, so the second tile is not
  // computed.
  const auto engine = std::make_shared<FakeEngine>(1'000'000);
  Request request{.rows = std::vector<double>(90, 1.0)};
  engine->before = [&](auto) { request.cancelled = true; };
  scheduler_.Submit(Work(request, engine));
  scheduler_.RunOne(scratch_);
  EXPECT_EQ(request.status.code(), Code::kCancelled);
  EXPECT_EQ(request.features[63], 2);
  EXPECT_EQ(request.features[64], 0);
}

TEST_F(TransformSchedulerTest, NamesTheRowOfTheRequestNotOfTheTile) {
  const auto engine = std::make_shared<FakeEngine>(1'000'000);
  engine->overflows = 7;
  Request request{.rows = std::vector<double>(90, 1.0)};
  request.rows[70] = 7;
  scheduler_.Submit(Work(request, engine));
  scheduler_.RunOne(scratch_);
  EXPECT_THAT(request.status,
              IsError(Code::kOutOfRange, _, _, "examples.dense.rows[70]: too large"));
  EXPECT_EQ(DetailOf(request.status)->metadata["row"], "70");
}

TEST_F(TransformSchedulerTest, AnErrorOrExhaustedMemoryInPrepareEndsTheRequestOnly) {
  Request bad{.rows = {1}};
  Request huge{.rows = {1}};
  TransformWork first = Work(bad, std::make_shared<FakeEngine>());
  first.prepare = []() -> absl::StatusOr<char*> { return absl::InvalidArgumentError("NaN"); };
  TransformWork second = Work(huge, std::make_shared<FakeEngine>());
  second.prepare = []() -> absl::StatusOr<char*> { throw std::bad_alloc(); };
  scheduler_.Submit(std::move(first));
  scheduler_.Submit(std::move(second));
  RunAll();
  EXPECT_EQ(bad.status.code(), Code::kInvalidArgument);
  EXPECT_EQ(huge.status.code(), Code::kResourceExhausted);
  EXPECT_FALSE(scheduler_.TransformsPending());
}

TEST_F(TransformSchedulerTest, WaitersForIdlenessGoOnWhenTheLastRequestIsDone) {
  Request request{.rows = {1}};
  scheduler_.WaitWhilePending(absl::Hours(1));  // returns at once, as nothing is pending
  scheduler_.Submit(Work(request, std::make_shared<FakeEngine>()));
  EXPECT_TRUE(scheduler_.TransformsPending());
  std::thread build([&] { scheduler_.WaitWhilePending(absl::Hours(1)); });
  scheduler_.RunOne(scratch_);
  build.join();
  EXPECT_FALSE(scheduler_.TransformsPending());
}

TEST_F(TransformSchedulerTest, WaitersForIdlenessGoOnAfterTheirPatienceOnABusyServer) {
  Request request{.rows = {1}};
  scheduler_.Submit(Work(request, std::make_shared<FakeEngine>()));
  scheduler_.WaitWhilePending(absl::ZeroDuration());
  EXPECT_TRUE(scheduler_.TransformsPending());
  scheduler_.RunOne(scratch_);
}

TEST(TransformSchedulerDrainTest, FinishesWhatWasAcceptedAndRefusesTheRest) {
  Metrics metrics;
  TransformScheduler scheduler({}, metrics.transform());
  Gate gate;
  const auto engine = std::make_shared<FakeEngine>();
  engine->before = [&](auto) { gate.Wait(); };
  std::atomic<int> done{0};
  double in = 1;
  double out[3] = {};
  int next = 0;
  const auto work = [&] {
    TransformWork w{.engine = engine};
    w.rows = RowsView{reinterpret_cast<const char*>(&in), FloatType::kFloat64, 1, 1};
    w.prepare = [to = &out[next++]]() -> absl::StatusOr<char*> {
      return reinterpret_cast<char*>(to);
    };
    w.done = [&](const absl::Status& status) { done += status.ok() ? 1 : 100; };
    return w;
  };
  ComputePool pool(2, [&] { scheduler.RunWorker(); });
  scheduler.Submit(work());
  scheduler.Submit(work());
  gate.AwaitWaiting();
  std::thread drain([&] { scheduler.Drain(); });
  gate.Open();
  drain.join();
  EXPECT_EQ(done, 2);
  scheduler.Submit(work());
  EXPECT_EQ(done, 102);
}

}  // namespace
}  // namespace phimap::testing
