// Tests workers that sleep, wake up and share queues.
#include <atomic>
#include <vector>

#include "core/thread/start_thread.h"
#include "server/schedule/compute_pool.h"
#include "tests/server/schedule/scheduler_fixture.h"
#include "tests/server/support/gate.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

// If a wake-up were lost, some caller would wait forever.
TEST(TransformWorkersTest, EachOfManyCallersInAClosedLoopIsAnswered) {
  constexpr int kCallers = 6;
  constexpr int kRequests = 500;
  Metrics metrics;
  TransformScheduler scheduler({}, metrics.transform());
  const std::shared_ptr<const Engine> engines[] = {std::make_shared<FakeEngine>(),
                                                   std::make_shared<FakeEngine>()};
  std::atomic<int> right{0};
  ComputePool pool(3, [&] { scheduler.RunWorker(); });
  RunTogether(kCallers, [&](int c) {
    for (int i = 0; i < kRequests; ++i) {
      // A request has one row, or enough rows for two batches.
      const std::vector<double> in(i % 3 == 0 ? 6 : 1, c * kRequests + i);
      std::vector<double> out(in.size());
      Gate finished;
      TransformWork work{.engine = engines[c % 2]};
      work.rows = RowsView{reinterpret_cast<const char*>(in.data()), FloatType::kFloat64,
                           static_cast<int64_t>(in.size()), 1};
      work.prepare = [&out]() -> absl::StatusOr<char*> {
        return reinterpret_cast<char*>(out.data());
      };
      work.done = [&](const absl::Status& status) {
        right += status.ok() && out.back() == 2 * in.back();
        finished.Open();
      };
      scheduler.Submit(std::move(work));
      finished.Wait();
    }
  });
  scheduler.Drain();
  EXPECT_EQ(right, kCallers * kRequests);
}

TEST(ComputePoolTest, ItsThreadsAskForShortSlices) {
  const absl::Duration before = TimeSlice();
  std::atomic<int64_t> slice_ns = -1;
  ComputePool(1, [&] { slice_ns = absl::ToInt64Nanoseconds(TimeSlice()); });
  // Linux before 6.12 has the same time slice for all threads, and does not report its length.
  EXPECT_EQ(absl::Nanoseconds(slice_ns.load()),
            before == absl::ZeroDuration() ? before : kShortTimeSlice);
}

}  // namespace
}  // namespace phimap::testing
