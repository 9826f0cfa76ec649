// A tiny request on an idle server runs on the thread that brought it, one at a time.
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "server/schedule/compute_pool.h"
#include "tests/server/schedule/scheduler_fixture.h"
#include "tests/server/support/gate.h"

namespace phimap::testing {
namespace {

using ::testing::ElementsAre;

class TransformInlineTest : public SchedulerFixture {
 protected:
  TransformInlineTest() : SchedulerFixture(absl::Microseconds(20), absl::Microseconds(20)) {}
};

TEST_F(TransformInlineTest, ATinyRequestIsDoneWhenSubmitReturns) {
  Request request{.rows = {1, 2}};
  scheduler_.Submit(Work(request, std::make_shared<FakeEngine>()));
  EXPECT_EQ(request.done, 1);
  EXPECT_THAT(request.features, ElementsAre(2, 4));
  EXPECT_FALSE(scheduler_.TransformsPending());
}

TEST_F(TransformInlineTest, ALongRequestGoesToAWorker) {
  // 21 µs at the rate that is assumed of an unknown version.
  Request request{.rows = {1}};
  scheduler_.Submit(Work(request, std::make_shared<FakeEngine>(21'000)));
  EXPECT_EQ(request.done, 0);
  RunAll();
  EXPECT_EQ(request.done, 1);
}

TEST_F(TransformInlineTest, WhileOneRunsInlineOthersAreQueued) {
  const auto engine = std::make_shared<FakeEngine>();
  Request first{.rows = {1}};
  Request second{.rows = {2}};
  engine->before = [&](auto) {
    if (second.prepared > 0) return;
    scheduler_.Submit(Work(second, engine));
    EXPECT_EQ(second.done, 0);
  };
  scheduler_.Submit(Work(first, engine));
  EXPECT_EQ(first.done, 1);
  EXPECT_EQ(second.done, 0);
  RunAll();
  EXPECT_THAT(second.features, ElementsAre(4));
}

// A worker that is busy with something large does not keep tiny requests waiting.
TEST_F(TransformInlineTest, ATinyRequestRunsBesideABusyWorker) {
  const auto large = std::make_shared<FakeEngine>(1'000'000);
  Request first{.rows = {1}};
  Request tiny{.rows = {2}};
  large->before = [&](auto) {
    scheduler_.Submit(Work(tiny, std::make_shared<FakeEngine>()));
    EXPECT_EQ(tiny.done, 1);
  };
  scheduler_.Submit(Work(first, large));
  RunAll();
  EXPECT_EQ(first.done, 1);
}

TEST_F(TransformInlineTest, WhileOneWaitsOthersAreQueuedBehindIt) {
  Request large{.rows = {1}};
  Request tiny{.rows = {2}};
  const auto engine = std::make_shared<FakeEngine>(1'000'000);
  scheduler_.Submit(Work(large, engine));
  scheduler_.Submit(Work(tiny, std::make_shared<FakeEngine>()));
  EXPECT_EQ(tiny.done, 0);
  RunAll();
  EXPECT_EQ(tiny.done, 1);
}

TEST_F(TransformInlineTest, AVersionThatWasFoundFastRunsInlineAndASlowOneDoesNot) {
  // 200,000 multiplications; the worker takes 10 µs, which is 2e10 a second.
  const auto fast = std::make_shared<FakeEngine>(200'000);
  const auto slow = std::make_shared<FakeEngine>(10'000);
  fast->before = [&](auto) { now_ += absl::Microseconds(10); };
  slow->before = [&](auto) { now_ += absl::Microseconds(50); };
  std::deque<Request> requests(4);
  for (Request& request : requests) request.rows = {1};
  scheduler_.Submit(Work(requests[0], fast));
  EXPECT_EQ(requests[0].done, 0);
  RunAll();
  scheduler_.Submit(Work(requests[1], fast));
  EXPECT_EQ(requests[1].done, 1);
  // 10 µs by the rate that is assumed, but it took 50: never again.
  scheduler_.Submit(Work(requests[2], slow));
  EXPECT_EQ(requests[2].done, 1);
  scheduler_.Submit(Work(requests[3], slow));
  EXPECT_EQ(requests[3].done, 0);
  RunAll();
}

TEST_F(TransformInlineTest, ACancelledRequestIsDroppedHereToo) {
  Request request{.rows = {1}};
  request.cancelled = true;
  scheduler_.Submit(Work(request, std::make_shared<FakeEngine>()));
  EXPECT_EQ(request.status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(request.prepared, 0);
}

class TransformIdleInlineTest : public SchedulerFixture {
 protected:
  TransformIdleInlineTest() : SchedulerFixture(absl::Microseconds(20), absl::Microseconds(150)) {}
};

TEST_F(TransformIdleInlineTest, WhatIsNotTinyGoesToAWorkerWhenSomethingRanJustNow) {
  const auto engine = std::make_shared<FakeEngine>(100'000);
  engine->before = [&](auto) { now_ += absl::Microseconds(100); };
  std::deque<Request> requests(4);
  for (Request& request : requests) request.rows = {1};
  scheduler_.Submit(Work(requests[0], engine));
  EXPECT_EQ(requests[0].done, 1);
  scheduler_.Submit(Work(requests[1], engine));
  EXPECT_EQ(requests[1].done, 0);
  RunAll();
  now_ += absl::Microseconds(30);
  scheduler_.Submit(Work(requests[2], engine));
  EXPECT_EQ(requests[2].done, 1);
  // What is tiny is not worth a hand-off in any case.
  scheduler_.Submit(Work(requests[3], std::make_shared<FakeEngine>()));
  EXPECT_EQ(requests[3].done, 1);
}

TEST_F(TransformIdleInlineTest, WhatIsNotTinyRunsHereOnlyWhenNothingElseRuns) {
  // 100 µs at the rate that is assumed of an unknown version.
  const auto engine = std::make_shared<FakeEngine>(100'000);
  Request first{.rows = {1}};
  Request second{.rows = {2}};
  engine->before = [&](auto) {
    if (second.prepared > 0) return;
    scheduler_.Submit(Work(second, engine));
    EXPECT_EQ(second.done, 0);
  };
  scheduler_.Submit(Work(first, engine));
  EXPECT_EQ(first.done, 1);
  EXPECT_EQ(second.done, 0);
  RunAll();
  EXPECT_EQ(second.done, 1);
}

// Under ThreadSanitizer: inline runs of many threads pass their scratches on.
TEST(TransformInlineThreadsTest, ThreadsThatSubmitAtOnceAllGetTheirFeatures) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 500;
  Metrics metrics;
  TransformScheduler scheduler({}, metrics.transform());
  const auto engine = std::make_shared<FakeEngine>();
  std::atomic<int> right{0};
  ComputePool pool(2, [&] { scheduler.RunWorker(); });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        const double in = t * kRequests + i;
        double out = -1;
        Gate finished;
        TransformWork work;
        work.engine = engine;
        work.rows = RowsView{reinterpret_cast<const char*>(&in), FloatType::kFloat64, 1, 1};
        work.prepare = [&out]() -> absl::StatusOr<char*> { return reinterpret_cast<char*>(&out); };
        work.done = [&](const absl::Status& status) {
          right += status.ok() && out == 2 * in;
          finished.Open();
        };
        scheduler.Submit(std::move(work));
        finished.Wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  scheduler.Drain();
  EXPECT_EQ(right, kThreads * kRequests);
  EXPECT_EQ(metrics.transform().queue_bytes->Value(), 0);
}

}  // namespace
}  // namespace phimap::testing
