#include "server/schedule/job_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "core/thread/mutex.h"
#include "gtest/gtest.h"

namespace phimap::testing {
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

TEST(JobQueueTest, WhatIsWithdrawnDoesNotStartAndTheOthersDo) {
  std::string order;
  Mutex running;
  running.Lock();
  {
    JobQueue queue(1);
    queue.Submit(nullptr, [&running] { MutexLock lock(&running); });  // keeps the thread busy
    const auto a = std::make_shared<const int>(1);
    const auto b = std::make_shared<const int>(2);
    queue.Submit(a, [&order] { order.push_back('a'); });
    queue.Submit(b, [&order] { order.push_back('b'); });
    EXPECT_NE(queue.Withdraw(a.get()), nullptr);
    EXPECT_EQ(queue.Withdraw(a.get()), nullptr);  // already withdrawn
    EXPECT_EQ(a.use_count(), 1);
    running.Unlock();
  }
  EXPECT_EQ(order, "b");
}

TEST(JobQueueTest, PiecesGiveWayToTheRestOfTheProcess) {
  const int before = getpriority(PRIO_PROCESS, gettid());
  int within = -1;
  {
    JobQueue(1).Submit(nullptr, [&within] { within = getpriority(PRIO_PROCESS, gettid()); });
  }
  EXPECT_EQ(within, std::max(before, JobQueue::kNiceness));
  EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), before);  // this thread keeps its priority
}

}  // namespace
}  // namespace phimap::testing
