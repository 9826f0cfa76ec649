#include "gtest/gtest.h"
#include "server/schedule/job_queue.h"

namespace phimap::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class WorkQuantumTest : public ::testing::Test {
 protected:
  void Work(WorkQuantum::Clock::duration time) { now_ += time; }
  // Works for `time` on one block of a stream.
  void Block(WorkQuantum::Clock::duration time) {
    quantum_.YieldIfDue();
    quantum_.Begin();
    Work(time);
    quantum_.End();
  }

  WorkQuantum::Clock::time_point now_{std::chrono::hours(1)};
  int yields_ = 0;
  WorkQuantum quantum_{[this] {
                         ++yields_;
                         now_ += milliseconds(20);
                       },
                       milliseconds(2), [this] { return now_; }};
};

TEST_F(WorkQuantumTest, StepsYieldOnceTheyHaveWorkedForAQuantum) {
  quantum_.Begin();
  Work(microseconds(1999));
  quantum_.YieldIfDue();
  EXPECT_EQ(yields_, 0);
  Work(microseconds(1));
  quantum_.YieldIfDue();
  EXPECT_EQ(yields_, 1);
  // The time during the yield, 20 ms, does not count as work.
  Work(microseconds(1999));
  quantum_.YieldIfDue();
  EXPECT_EQ(yields_, 1);
}

TEST_F(WorkQuantumTest, ALongStepYieldsOnce) {
  quantum_.Begin();
  Work(milliseconds(100));
  quantum_.YieldIfDue();
  quantum_.YieldIfDue();
  EXPECT_EQ(yields_, 1);
}

TEST_F(WorkQuantumTest, SmallBlocksAddUpAndWaitsBetweenThemDoNot) {
  // Each block takes 0.5 ms and a quantum is 2 ms, so there is one yield for every four blocks.
  for (int i = 0; i < 40; ++i) {
    Block(microseconds(500));
    Work(milliseconds(7));  // the wait for the client's next block
  }
  EXPECT_EQ(yields_, 9);
  quantum_.YieldIfDue();
  EXPECT_EQ(yields_, 10);
}

TEST_F(WorkQuantumTest, AQuantumOfZeroYieldsBeforeEveryStep) {
  int yields = 0;
  WorkQuantum always([&yields] { ++yields; }, milliseconds(0), [this] { return now_; });
  always.YieldIfDue();
  always.Begin();
  always.YieldIfDue();
  always.End();
  EXPECT_EQ(yields, 2);
}

TEST_F(WorkQuantumTest, WithoutAnybodyToYieldToItOnlyCounts) {
  WorkQuantum alone;
  alone.Begin();
  alone.YieldIfDue();
  alone.End();
}

}  // namespace
}  // namespace phimap::testing
