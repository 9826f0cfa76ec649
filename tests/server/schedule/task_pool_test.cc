#include "server/schedule/task_pool.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/server/support/gate.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
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
  Gate gate;
  TaskPool pool("tests", 1, 2);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  gate.AwaitWaiting();  // now the thread is busy, and the queue is empty
  ASSERT_TRUE(pool.Submit([] {}).ok());
  ASSERT_TRUE(pool.Submit([] {}).ok());
  EXPECT_THAT(pool.Submit([] {}),
              IsError(StatusCode::kResourceExhausted, _, _, HasSubstr("limit is 2")));
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
}  // namespace phimap::testing
