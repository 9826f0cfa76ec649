#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "core/thread/start_thread.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(TimeSliceTest, IsThatOfTheThreadAloneAndChangesNothingElse) {
  const absl::Duration before = TimeSlice();
  std::thread([before] {
    const int niceness = getpriority(PRIO_PROCESS, gettid());
    const int policy = sched_getscheduler(0);
    RequestTimeSlice(kShortTimeSlice);
    EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), niceness);
    EXPECT_EQ(sched_getscheduler(0), policy);
    // Before version 6.12, Linux has one slice for all threads and does not report it.
    EXPECT_EQ(TimeSlice(), before == absl::ZeroDuration() ? before : kShortTimeSlice);
  }).join();
  EXPECT_EQ(TimeSlice(), before);
}

}  // namespace
}  // namespace phimap::testing
