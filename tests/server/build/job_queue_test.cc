#include "server/build/job_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace phimap {
namespace {

TEST(JobQueueTest, PiecesStartInOrderAndAllOfThemBeforeItEnds) {
  std::string order;
  {
    JobQueue queue(1);
    for (const char name : {'a', 'b', 'c'}) {
      queue.Submit(nullptr, [&order, name] { order.push_back(name); });
    }
  }
  EXPECT_EQ(order, "abc");
}

TEST(JobQueueTest, PiecesGiveWayToTheRestOfTheProcess) {
  const int before = getpriority(PRIO_PROCESS, gettid());
  int within = -1;
  {
    JobQueue(1).Submit(nullptr, [&within] { within = getpriority(PRIO_PROCESS, gettid()); });
  }
  EXPECT_EQ(within, std::max(before, JobQueue::kNiceness));
  EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), before);  // of the others
}

}  // namespace
}  // namespace phimap
