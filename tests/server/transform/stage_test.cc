// Tests Stage, which gathers the small requests of an event loop and computes them together.
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "server/schedule/batch_policy.h"
#include "server/schedule/compute_pool.h"
#include "server/transform/row_server.h"
#include "tests/server/schedule/scheduler_fixture.h"
#include "tests/server/support/gate.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class StageTest : public SchedulerFixture {
 protected:
  // An engine that records in passes_, for each batch, the number of rows of each request.
  std::shared_ptr<FakeEngine> EngineThatTells(int64_t multiplications_per_row = 1) {
    auto engine = std::make_shared<FakeEngine>(multiplications_per_row);
    engine->before = [this](absl::Span<const TransformPart> parts) {
      passes_.emplace_back();
      for (const TransformPart& part : parts) passes_.back().push_back(part.rows.rows());
    };
    return engine;
  }

  bool Take(Request& request, std::shared_ptr<const Engine> engine) {
    TransformWork work = Work(request, std::move(engine));
    return stage_.Take(work);
  }

  Stage stage_{scheduler_};
  std::vector<std::vector<int64_t>> passes_;
};

TEST_F(StageTest, WhatGatheredIsOnePassForEachVersionTheOldestFirst) {
  const auto first = EngineThatTells();
  const auto second = EngineThatTells();
  std::deque<Request> requests(5);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].rows.assign(i % 2 == 0 ? 1 : 2, static_cast<double>(i));
    EXPECT_TRUE(Take(requests[i], i % 2 == 0 ? first : second));
    EXPECT_EQ(requests[i].done, 0);
  }
  EXPECT_FALSE(stage_.empty());
  stage_.Run();
  EXPECT_TRUE(stage_.empty());
  EXPECT_THAT(passes_, ElementsAre(ElementsAre(1, 1, 1), ElementsAre(2, 2)));
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].done, 1);
    EXPECT_EQ(requests[i].features[0], 2.0 * i);
  }
}

TEST_F(StageTest, ARequestThatTakesLongerThanAQuantumIsNotTaken) {
  // A multiplication is assumed to take a nanosecond.
  const auto quantum = EngineThatTells(absl::ToInt64Nanoseconds(kLoopQuantum));
  const auto longer = EngineThatTells(absl::ToInt64Nanoseconds(kLoopQuantum) + 1000);
  Request small{.rows = {1}};
  Request large{.rows = {1}};
  EXPECT_TRUE(Take(small, quantum));
  EXPECT_TRUE(stage_.full());
  EXPECT_FALSE(Take(large, longer));
  EXPECT_FALSE(scheduler_.RunOne(scratch_));  // the request was not given to the workers, either
  stage_.Run();
  EXPECT_EQ(small.done, 1);
  EXPECT_EQ(large.done, 0);
}

TEST_F(StageTest, WhatComesWhenFourQuantaAreStagedIsNotTaken) {
  const auto engine = EngineThatTells(absl::ToInt64Nanoseconds(kLoopQuantum));
  std::deque<Request> requests(5);
  for (Request& request : requests) request.rows = {1};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Take(requests[i], engine));
  EXPECT_FALSE(Take(requests[4], engine));
  stage_.Run();
  EXPECT_TRUE(Take(requests[4], engine));
  stage_.Run();
}

TEST_F(StageTest, ABatchHasAtMostSixtyFourRows) {
  const auto engine = EngineThatTells();
  std::deque<Request> requests(70);
  for (Request& request : requests) {
    request.rows = {1};
    EXPECT_TRUE(Take(request, engine));
  }
  stage_.Run();
  ASSERT_EQ(passes_.size(), 2);
  EXPECT_EQ(passes_[0].size(), 64);
  EXPECT_EQ(passes_[1].size(), 6);
}

TEST_F(StageTest, WhatWasGivenUpMeanwhileCostsNothing) {
  Request request{.rows = {1}};
  EXPECT_TRUE(Take(request, EngineThatTells()));
  request.cancelled = true;
  stage_.Run();
  EXPECT_EQ(request.done, 1);
  EXPECT_EQ(request.status.code(), StatusCode::kCancelled);
  EXPECT_TRUE(passes_.empty());
}

TEST_F(StageTest, WhatIsStagedWhileABatchRunsIsKeptForTheNextRun) {
  const auto engine = std::make_shared<FakeEngine>();
  Request first{.rows = {1}};
  Request second{.rows = {2}};
  engine->before = [&](auto) {
    if (second.prepared == 0 && stage_.empty()) {
      EXPECT_TRUE(Take(second, engine));
    }
  };
  EXPECT_TRUE(Take(first, engine));
  stage_.Run();
  EXPECT_EQ(first.done, 1);
  EXPECT_EQ(second.done, 0);
  stage_.Run();
  EXPECT_EQ(second.done, 1);
}

// Eight rows are staged. A worker computes half of them while this thread computes the other half.
TEST(StageHandOverTest, AWorkerThatSleepsTakesHalfOfALargeBatch) {
  Metrics metrics;
  TransformScheduler scheduler({}, metrics.transform());
  Stage stage(scheduler);
  Gate both;
  std::atomic<int> computing{0};
  const auto engine = std::make_shared<FakeEngine>();
  std::atomic<bool> gated{false};
  engine->before = [&](absl::Span<const TransformPart> parts) {
    if (!gated || parts.size() != 4) return;
    // The gate opens only if the two halves are computed at the same time.
    if (++computing == 2) both.Open();
    both.Wait();
  };
  ComputePool pool(1, [&] { scheduler.RunWorker(); });
  std::deque<Request> requests(8);
  std::atomic<int> done{0};
  const auto work = [&](Request& request) {
    TransformWork out{.engine = engine};
    out.rows =
        RowsView{reinterpret_cast<const char*>(request.rows.data()), FloatType::kFloat64, 1, 1};
    out.prepare = [&request]() -> absl::StatusOr<char*> {
      request.features.resize(1);
      return reinterpret_cast<char*>(request.features.data());
    };
    out.done = [&done](const absl::Status& status) { done += status.ok() ? 1 : 100; };
    return out;
  };
  // HandOver gives a batch back as long as no worker sleeps, so the test first waits until the
  // worker sleeps.
  for (;;) {
    Request probe{.rows = {1}};
    std::vector<QueuedWork> batch;
    batch.push_back(*scheduler.Accept(work(probe)));
    batch = scheduler.HandOver(std::move(batch));
    const bool slept = batch.empty();
    if (!slept) {
      EngineScratch scratch;
      scheduler.RunBatch(std::move(batch), scratch);
    }
    scheduler.WaitWhilePending(absl::Hours(1));
    if (slept) break;
  }
  done = 0;
  for (Request& request : requests) request.rows = {1};
  // On a machine with other work a row may have taken so long that the stage does not take another.
  // What it has is then computed, which also measures a row anew.
  const auto stage_all = [&] {
    gated = false;
    for (Request& request : requests) {
      for (TransformWork staged = work(request); !stage.Take(staged); staged = work(request)) {
        stage.Run();
        scheduler.WaitWhilePending(absl::Hours(1));
        Request probe{.rows = {1}};
        std::vector<QueuedWork> batch;
        batch.push_back(*scheduler.Accept(work(probe)));
        EngineScratch scratch;
        scheduler.RunBatch(std::move(batch), scratch);
        --done;
      }
    }
    gated = true;
  };
  stage_all();
  // The test cannot see when the worker goes back to sleep after its last batch. It therefore
  // repeats the run until the worker takes its half.
  while (computing < 2) {
    stage.Run();
    if (computing < 2) {
      scheduler.WaitWhilePending(absl::Hours(1));
      stage_all();
    }
  }
  scheduler.Drain();
  EXPECT_EQ(done % 8, 0);
}

}  // namespace
}  // namespace phimap::testing
