#include "server/schedule/task_pool.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/server/support/gate.h"

namespace phimap {
namespace {

TEST(TaskPoolTest, RunsTasksInOrderAndAllOfThemBeforeItEnds) {
  std::vector<int> order;
  {
    TaskPool pool("tests", 1, 100);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(pool.Submit([&order, i] { order.push_back(i); }).ok());
    }
  }
  ASSERT_EQ(order.size(), 50);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[i], i);
}

TEST(TaskPoolTest, RefusesWhatDoesNotFitAndNamesTheLimit) {
  testing::Gate gate;
  TaskPool pool("tests", 1, 2);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  gate.AwaitWaiting();  // now the thread is busy, and the queue is empty
  ASSERT_TRUE(pool.Submit([] {}).ok());
  ASSERT_TRUE(pool.Submit([] {}).ok());
  const absl::Status refused = pool.Submit([] {});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("limit is 2"), std::string::npos) << refused;
  gate.Open();
}

TEST(TaskPoolTest, ATaskMaySubmitAnother) {
  bool ran = false;
  {
    TaskPool pool("tests", 1, 2);
    ASSERT_TRUE(pool.Submit([&] { ASSERT_TRUE(pool.Submit([&] { ran = true; }).ok()); }).ok());
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace phimap
