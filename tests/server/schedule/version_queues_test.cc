#include "gtest/gtest.h"
#include "server/schedule/transform_scheduler.h"
#include "tests/server/schedule/scheduler_fixture.h"

namespace phimap::testing {
namespace {

class VersionQueuesTest : public ::testing::Test {
 protected:
  void Push(const std::shared_ptr<const Engine>& engine, int64_t rows) {
    TransformWork work{.engine = engine};
    work.rows = RowsView{nullptr, FloatType::kFloat64, rows, 1};
    queues_.Push(QueuedWork(std::move(work), absl::InfinitePast(), owner_));
  }
  // Takes the next batch, and returns how many requests it has.
  size_t Take(int workers) { return queues_.Take(workers).size(); }

  // The batches that are taken here are dropped without an answer, and so abandoned.
  struct CountingOwner final : QueuedWork::Owner {
    void Abandon(TransformWork&) override { ++abandoned; }
    int abandoned = 0;
  };
  CountingOwner owner_;

  const std::shared_ptr<const Engine> a_ = std::make_shared<FakeEngine>();
  const std::shared_ptr<const Engine> b_ = std::make_shared<FakeEngine>();
  VersionQueues queues_;
};

TEST_F(VersionQueuesTest, OneWorkerTakesAllAndTwoTakeHalvesOfWhatIsThere) {
  for (int i = 0; i < 16; ++i) Push(a_, 1);
  EXPECT_EQ(Take(1), 16);
  for (int i = 0; i < 16; ++i) Push(a_, 1);
  EXPECT_EQ(Take(2), 8);
  EXPECT_EQ(Take(2), 4);
  EXPECT_EQ(Take(2), 4);  // so few requests are not divided any further
  EXPECT_EQ(Take(2), 0);
}

TEST_F(VersionQueuesTest, WorkIsAbandonedOnceWhereverItWasMoved) {
  for (int i = 0; i < 5; ++i) Push(a_, 1);
  {
    std::vector<QueuedWork> batch = queues_.Take(1);
    std::vector<QueuedWork> moved(std::make_move_iterator(batch.begin()),
                                  std::make_move_iterator(batch.end()));
    EXPECT_EQ(owner_.abandoned, 0);
    moved[0].owner = nullptr;  // finished
  }
  EXPECT_EQ(owner_.abandoned, 4);
}

TEST_F(VersionQueuesTest, WhileAnotherVersionWaitsForTheOtherWorkerNothingIsShared) {
  for (int i = 0; i < 16; ++i) Push(a_, 1);
  Push(b_, 1);
  EXPECT_EQ(Take(2), 16);
  EXPECT_EQ(Take(2), 1);
  EXPECT_TRUE(queues_.empty());
}

TEST_F(VersionQueuesTest, WorthwhileTakesAreThoseOfAllVersionsThatWait) {
  EXPECT_EQ(queues_.batches(), 0);
  Push(a_, 4);
  EXPECT_EQ(queues_.batches(), 1);
  Push(a_, 1);
  EXPECT_EQ(queues_.batches(), 2);
  Push(b_, 1000);
  EXPECT_EQ(queues_.batches(), 3);
  while (!queues_.empty()) Take(2);
  EXPECT_EQ(queues_.batches(), 0);
}

}  // namespace
}  // namespace phimap::testing
