#include "server/registry/catalog_follower.h"

#include <string>

#include "core/status/error.h"
#include "gmock/gmock.h"
#include "tests/server/registry/registry_fixture.h"

namespace phimap::testing {
namespace {

// A feed of the changes of `store`. Await returns only after Tell or End.
class ToldFeed final : public ChangeFeed {
 public:
  explicit ToldFeed(Store& store) : store_(store) {}

  void Await(absl::Duration) override {
    MutexLock lock(&mutex_);
    ++waits_;
    changed_.NotifyAll();
    while (told_ == 0 && !ended_) changed_.Wait(&mutex_);
    if (told_ > 0) --told_;
  }
  absl::StatusOr<NameChanges> ChangesSince(const Revision& since) override {
    absl::StatusOr<NameChanges> changes = store_.ChangesSince(since);
    MutexLock lock(&mutex_);
    ++answers_;
    changed_.NotifyAll();
    return changes;
  }

  void Tell() {
    MutexLock lock(&mutex_);
    ++told_;
    changed_.NotifyAll();
  }
  // Makes every present and future wait return.
  void End() {
    MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  void AwaitWaits(int count) {
    MutexLock lock(&mutex_);
    while (waits_ < count) changed_.Wait(&mutex_);
  }
  void AwaitAnswers(int count) {
    MutexLock lock(&mutex_);
    while (answers_ < count) changed_.Wait(&mutex_);
  }

 private:
  Store& store_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int told_ ABSL_GUARDED_BY(mutex_) = 0;
  int waits_ ABSL_GUARDED_BY(mutex_) = 0;
  int answers_ ABSL_GUARDED_BY(mutex_) = 0;
};

class CatalogFollowerTest : public RegistryFixture {
 protected:
  void Follow() {
    auto feed = std::make_unique<ToldFeed>(store_);
    feed_ = feed.get();
    follower_ = std::make_unique<CatalogFollower>(*registry_, std::move(feed),
                                                  metrics_.registry().catalog_errors);
  }
  // Ends the follower's wait, and destroys the follower.
  void Stop() {
    feed_->End();
    follower_.reset();
  }

  ToldFeed* feed_ = nullptr;
  std::unique_ptr<CatalogFollower> follower_;
};

TEST_F(CatalogFollowerTest, TheRegistryLearnsWhatOthersChangedWithoutBeingAsked) {
  store_.Put("a", 1, SmallArtifact());
  Start();
  Follow();
  feed_->AwaitWaits(1);
  store_.Put("a", 2, SmallArtifact());
  feed_->Tell();
  feed_->AwaitWaits(2);
  EXPECT_EQ(registry_->revision(), store_.ChangesSince(Revision())->revision);
  EXPECT_LT(follower_->Age(), absl::Seconds(30));
  Stop();
}

TEST_F(CatalogFollowerTest, WhileTheCatalogIsAwayItsAgeGrowsAndErrorsAreCounted) {
  store_.Put("a", 1, SmallArtifact());
  Start();
  Follow();
  feed_->AwaitWaits(1);
  store_.FailChanges(true);
  feed_->Tell();
  const absl::Duration before = follower_->Age();
  feed_->AwaitAnswers(4);
  EXPECT_GT(follower_->Age(), before);
  // Between the first failed attempt and the last, the follower pauses twice: for 50 ms and for 100
  // ms.
  EXPECT_GE(follower_->Age(), absl::Milliseconds(150));
  EXPECT_GE(metrics_.registry().catalog_errors->Value(), 2);
  store_.FailChanges(false);
  feed_->AwaitWaits(2);
  EXPECT_LT(follower_->Age(), absl::Seconds(30));
  Stop();
}

}  // namespace
}  // namespace phimap::testing
