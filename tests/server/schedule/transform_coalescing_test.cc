// Tests that requests that queue up while the workers are busy are computed in one batch, and that
// their results are the same as without batching.
#include <cstring>
#include <deque>
#include <string>

#include "tests/server/schedule/scheduler_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

class TransformCoalescingTest : public SchedulerFixture {
 protected:
  // An engine that records the number of requests of each batch in `passes`.
  std::shared_ptr<FakeEngine> Recorded(std::vector<int>& passes) {
    const auto engine = std::make_shared<FakeEngine>();
    engine->before = [&passes](absl::Span<const TransformPart> parts) {
      passes.push_back(static_cast<int>(parts.size()));
    };
    return engine;
  }
  // Submits a request with these rows. The request lives as long as the test.
  Request& Submit(std::vector<double> rows, std::shared_ptr<const Engine> engine) {
    Request& request = requests_.emplace_back();
    request.rows = std::move(rows);
    scheduler_.Submit(Work(request, std::move(engine)));
    return request;
  }

  std::vector<int> passes_;
  std::deque<Request> requests_;
};

TEST_F(TransformCoalescingTest, WhatGatheredIsComputedInOnePass) {
  const auto engine = Recorded(passes_);
  for (double i = 0; i < 5; ++i) Submit({i, 10 * i}, engine);
  EXPECT_TRUE(scheduler_.RunOne(scratch_));
  EXPECT_THAT(passes_, ElementsAre(5));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(requests_[i].done, 1);
    EXPECT_THAT(requests_[i].features, ElementsAre(2.0 * i, 20.0 * i));
  }
  EXPECT_FALSE(scheduler_.RunOne(scratch_));
}

TEST_F(TransformCoalescingTest, ATakeEndsAtSixtyFourRowsAndALargeRequestGoesAlone) {
  const auto engine = Recorded(passes_);
  for (const int rows : {30, 34, 1, 1}) Submit(std::vector<double>(rows), engine);
  RunAll();
  EXPECT_THAT(passes_, ElementsAre(2, 2));
  passes_.clear();
  for (const int rows : {1, 80, 1, 1}) Submit(std::vector<double>(rows), engine);
  RunAll();
  EXPECT_THAT(passes_, ElementsAre(1, 1, 2));
}

TEST_F(TransformCoalescingTest, ARequestAtFaultDoesNotFailItsNeighbours) {
  const auto engine = Recorded(passes_);
  engine->overflows = 7;
  Request& before = Submit({1}, engine);
  Request& overflows = Submit({1, 7}, engine);
  Request nan{.rows = {5}};
  TransformWork work = Work(nan, engine);
  work.prepare = []() -> absl::StatusOr<char*> { return absl::InvalidArgumentError("NaN"); };
  scheduler_.Submit(std::move(work));
  Request& after = Submit({3}, engine);
  EXPECT_TRUE(scheduler_.RunOne(scratch_));
  EXPECT_THAT(passes_, ElementsAre(3));
  EXPECT_THAT(before.features, ElementsAre(2));
  EXPECT_THAT(after.features, ElementsAre(6));
  EXPECT_TRUE(before.status.ok() && after.status.ok());
  EXPECT_EQ(overflows.status.message(), "examples.dense.rows[1]: too large");
  EXPECT_EQ(nan.status.code(), Code::kInvalidArgument);
}

TEST_F(TransformCoalescingTest, WhatWasGivenUpIsDroppedFromTheTake) {
  const auto engine = Recorded(passes_);
  Request& kept = Submit({1}, engine);
  Request& cancelled = Submit({2}, engine);
  Request expired{.rows = {3}};
  TransformWork late = Work(expired, engine);
  late.deadline = now_ + absl::Seconds(1);
  scheduler_.Submit(std::move(late));
  cancelled.cancelled = true;
  now_ += absl::Seconds(1);
  EXPECT_TRUE(scheduler_.RunOne(scratch_));
  EXPECT_THAT(passes_, ElementsAre(1));
  EXPECT_TRUE(kept.status.ok());
  EXPECT_EQ(cancelled.status.code(), Code::kCancelled);
  EXPECT_EQ(expired.status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(cancelled.prepared + expired.prepared, 0);
}

TEST_F(TransformCoalescingTest, ALongQueueOfOneVersionDelaysAnotherByOneTake) {
  std::vector<int> long_passes;
  std::vector<int> short_passes;
  const auto busy = Recorded(long_passes);
  const auto quiet = Recorded(short_passes);
  // Three requests of one version, 32 rows each, then one request of another version.
  for (int i = 0; i < 3; ++i) Submit(std::vector<double>(32), busy);
  Request& alone = Submit({1}, quiet);
  EXPECT_TRUE(scheduler_.RunOne(scratch_));
  EXPECT_EQ(alone.done, 0);
  EXPECT_TRUE(scheduler_.RunOne(scratch_));
  EXPECT_EQ(alone.done, 1);
  EXPECT_THAT(long_passes, ElementsAre(2));
  RunAll();
  EXPECT_THAT(long_passes, ElementsAre(2, 1));
  EXPECT_THAT(short_passes, ElementsAre(1));
}

TEST_F(TransformCoalescingTest, VersionsTakeTurnsAndEachIsServedOldestFirst) {
  const auto a = std::make_shared<FakeEngine>();
  const auto b = std::make_shared<FakeEngine>();
  std::string order;
  const struct {
    std::shared_ptr<const Engine> engine;
    char name;
    int rows;
  } plan[] = {{a, '1', 20}, {a, '2', 40}, {a, '3', 20}, {b, 'x', 5}, {b, 'y', 5}};
  for (const auto& [engine, name, rows] : plan) {
    Request& request = requests_.emplace_back();
    request.rows.resize(rows);
    TransformWork work = Work(request, engine);
    work.done = [&order, n = name](const absl::Status&) { order.push_back(n); };
    scheduler_.Submit(std::move(work));
  }
  RunAll();
  EXPECT_EQ(order, "12xy3");
}

TEST_F(TransformCoalescingTest, APassIsCountedWithItsRequestsAndRowsAndPhases) {
  const auto engine = std::make_shared<FakeEngine>();
  for (int i = 0; i < 3; ++i) {
    Request& request = requests_.emplace_back();
    request.rows = {1, 2};
    TransformWork work = Work(request, engine);
    work.received = now_ - absl::Milliseconds(4);
    scheduler_.Submit(std::move(work));
    now_ += absl::Milliseconds(1);
  }
  engine->before = [this](auto) { now_ += absl::Milliseconds(10); };
  EXPECT_TRUE(scheduler_.RunOne(scratch_));
  EXPECT_EQ(metrics_.transform().batch_requests->Collect().histogram.sample_count, 1);
  EXPECT_EQ(metrics_.transform().batch_requests->Collect().histogram.sample_sum, 3);
  EXPECT_EQ(metrics_.transform().batch_rows->Collect().histogram.sample_sum, 6);
  EXPECT_EQ(metrics_.transform().rows->Value(), 6);
  // The requests waited 3, 2 and 1 ms.
  EXPECT_EQ(metrics_.transform().queue_seconds->Collect().histogram.sample_count, 3);
  EXPECT_NEAR(metrics_.transform().queue_seconds->Collect().histogram.sample_sum, 6e-3, 1e-9);
  EXPECT_NEAR(metrics_.transform().parse_seconds->Collect().histogram.sample_sum, 12e-3, 1e-9);
  // The batch took 10 ms. This time counts once for each of the three requests, but only once for
  // the pool.
  EXPECT_EQ(metrics_.transform().compute_seconds->Collect().histogram.sample_count, 3);
  EXPECT_NEAR(metrics_.transform().compute_seconds->Collect().histogram.sample_sum, 30e-3, 1e-9);
  EXPECT_NEAR(metrics_.transform().pool_busy_seconds->Value(), 10e-3, 1e-9);
  EXPECT_EQ(metrics_.transform().inline_requests->Value(), 0);
}

// Uses the real engine. The three requests have 1, 5 and 58 rows, so that the boundaries between
// requests fall inside the engine's tiles.
TEST(TransformCoalescingBitsTest, SharedPassesGiveTheBitsOfEachRequestAlone) {
  const PlanShape shape{
      .features = FeatureKind::kProduct, .feature_count = 37, .w = WKind::kTriangular};
  std::unique_ptr<const Engine> loaded = Engine::Load(MakePlan(shape)).value();
  const std::shared_ptr<const Engine> engine = std::move(loaded);
  Metrics metrics;
  TransformScheduler scheduler({}, metrics.transform());
  EngineScratch scratch;
  const Matrix<float> inputs[] = {UniformFloatRows({.rows = 1, .cols = 5, .seed = 1}),
                                  UniformFloatRows({.rows = 5, .cols = 5, .seed = 2}),
                                  UniformFloatRows({.rows = 58, .cols = 5, .seed = 3})};
  std::deque<Matrix<float>> together;
  int done = 0;
  for (const Matrix<float>& input : inputs) {
    Matrix<float>& out = together.emplace_back(input.rows(), engine->output_columns());
    TransformWork work{.engine = engine, .rows = WireRows(input)};
    work.prepare = [&out]() -> absl::StatusOr<char*> {
      return reinterpret_cast<char*>(out.data());
    };
    work.done = [&done](const absl::Status& status) { done += status.ok() ? 1 : 100; };
    scheduler.Submit(std::move(work));
  }
  EXPECT_TRUE(scheduler.RunOne(scratch));
  EXPECT_EQ(done, 3);
  EXPECT_EQ(metrics.transform().batch_rows->Collect().histogram.sample_sum, 64);
  for (int i = 0; i < 3; ++i) {
    const Matrix<float> alone = MustTransform<float>(*engine, WireRows(inputs[i]));
    EXPECT_EQ(std::memcmp(alone.data(), together[i].data(), alone.size() * sizeof(float)), 0) << i;
  }
  scheduler.Drain();
}

}  // namespace
}  // namespace phimap::testing
