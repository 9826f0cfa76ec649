#include "server/build/build_job.h"

#include <chrono>

#include "gtest/gtest.h"
#include "server/observe/metrics.h"

namespace phimap::testing {
namespace {

using std::chrono::duration;

TEST(BuildJobTest, TheTimeLeftIsThatOfTheShareThatIsDone) {
  const Metrics metrics;
  BuildJob job({"letters", "id"}, BuildSpec(), "digest", BuildJob::Clock::now(), WorkQuantum(),
               metrics.build());
  ASSERT_TRUE(job.Apply(BuildEvent::kFinish));
  EXPECT_EQ(job.Snapshot().seconds_left, 0);
  const auto before = BuildJob::Clock::now();
  ASSERT_TRUE(job.Apply(BuildEvent::kStart));
  // It is too early for an estimate of the time left.
  ASSERT_TRUE(job.Checkpoint("gram", 0.02).ok());
  EXPECT_EQ(job.Snapshot().seconds_left, 0);
  ASSERT_TRUE(job.Checkpoint("gram", 0.25).ok());
  const double left = job.Snapshot().seconds_left;
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 3 * duration<double>(BuildJob::Clock::now() - before).count());
  ASSERT_TRUE(job.Checkpoint("encode", 1).ok());
  EXPECT_EQ(job.Snapshot().seconds_left, 0);
  ASSERT_TRUE(job.Checkpoint("encode", 0.5).ok());
  ASSERT_TRUE(job.Apply(BuildEvent::kComputed));
  EXPECT_EQ(job.Snapshot().seconds_left, 0);
}

}  // namespace
}  // namespace phimap::testing
