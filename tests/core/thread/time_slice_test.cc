#include "core/thread/time_slice.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

namespace phimap {
namespace {

TEST(TimeSliceTest, IsThatOfTheThreadAloneAndChangesNothingElse) {
  const absl::Duration before = TimeSlice();
  std::thread([before] {
    setpriority(PRIO_PROCESS, gettid(), 3);
    RequestTimeSlice(kShortTimeSlice);
    EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), 3);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    // Kernels before 6.12 know one slice for all, and say nothing.
    EXPECT_EQ(TimeSlice(), before == absl::ZeroDuration() ? before : kShortTimeSlice);
  }).join();
  EXPECT_EQ(TimeSlice(), before);
}

TEST(TimeSliceTest, OutOfRangeIsTakenToItsEndAndBreaksNothing) {
  std::thread([] {
    RequestTimeSlice(absl::Hours(1));
    EXPECT_LE(TimeSlice(), absl::Milliseconds(100));
  }).join();
}

}  // namespace
}  // namespace phimap
