// Tests what a store's clock decides, and that a clock that was set decides nothing for an hour.
// The clock of the database and the server's monotonic one are moved apart.
#include "server/store/store_clock.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/store/build_claims.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

constexpr absl::Duration kTtl = absl::Minutes(10);

class StoreClockTest : public ::testing::Test {
 protected:
  StoreClockTest() {
    SqliteStoreOptions options = OptionsFor(directory_.path(), &clock_);
    options.steady = [this] { return steady_; };
    auto opened = SqliteStore::Open(options, PosixFileSystem()).value();
    store_ = std::move(opened);
    PublishRequest request = RequestFor("build-1", "trial");
    request.version.ttl = kTtl;
    EXPECT_TRUE(store_->Publish(request, "artifact").ok());
  }
  void Pass(absl::Duration duration) {
    clock_.now += duration;
    steady_ += duration;
  }
  // Deletes what has expired. Returns whether the version is still there.
  bool IsThere() {
    const auto deleted = store_->DeleteExpired().value();
    return store_->GetVersion("trial", 1).ok();
  }

  TemporaryDirectory directory_;
  ManualClock clock_;
  absl::Time steady_ = absl::UnixEpoch();
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(StoreClockTest, TimeThatPassesIsBelieved) {
  Pass(kTtl - absl::Seconds(1));
  EXPECT_TRUE(IsThere());
  Pass(absl::Seconds(1));
  EXPECT_FALSE(IsThere());
  EXPECT_EQ(store_->clock()->jumps(), 0);
}

TEST_F(StoreClockTest, AClockThatIsSetADayAheadDeletesNothingForAnHour) {
  clock_.now += absl::Hours(24);
  EXPECT_TRUE(IsThere());
  EXPECT_FALSE(store_->clock()->trusted());
  EXPECT_EQ(store_->clock()->jumps(), 1);
  for (int i = 0; i < 59; ++i) {
    Pass(absl::Minutes(1));
    EXPECT_TRUE(IsThere());
  }
  // An hour is enough to notice the alert, and to set the clock right.
  Pass(absl::Minutes(1));
  EXPECT_FALSE(IsThere());
}

TEST_F(StoreClockTest, AClockThatIsSetRightInTimeHasDeletedNothing) {
  clock_.now += absl::Hours(24);
  EXPECT_TRUE(IsThere());
  Pass(absl::Minutes(1));
  clock_.now -= absl::Hours(24);
  EXPECT_TRUE(IsThere());
  EXPECT_EQ(store_->clock()->jumps(), 1);
  Pass(kTtl);
  EXPECT_TRUE(IsThere());  // still distrusted
  Pass(absl::Hours(1));
  EXPECT_FALSE(IsThere());
}

TEST_F(StoreClockTest, AMinuteIsNoJumpAndMoreIsOne) {
  clock_.now += absl::Seconds(60);
  EXPECT_TRUE(IsThere());
  EXPECT_TRUE(store_->clock()->trusted());
  clock_.now += absl::Milliseconds(60'001);
  EXPECT_TRUE(IsThere());
  EXPECT_FALSE(store_->clock()->trusted());
}

TEST_F(StoreClockTest, RecordsArePrunedByATrustedClockAlone) {
  clock_.now += kBuildRetention + absl::Hours(1);
  EXPECT_TRUE(store_->Publish(RequestFor("build-2"), "artifact").ok());  // this prunes
  clock_.now -= kBuildRetention + absl::Hours(1);
  EXPECT_TRUE(store_->GetBuild("trial", "build-1").ok());
}

// A server whose lease looks over because the clock jumped may still be working.
TEST_F(StoreClockTest, ABuildIsTakenOverByATrustedClockAlone) {
  BuildClaims owner(store_->database(), "owner", store_->clock());
  BuildClaims other(store_->database(), "other", store_->clock());
  ASSERT_TRUE(owner.Take("m", "b", "spec", absl::Minutes(1))->ours);
  clock_.now += absl::Hours(1);
  const auto refused = other.Take("m", "b", "spec", absl::Minutes(1)).value();
  EXPECT_FALSE(refused.ours);
  EXPECT_EQ(refused.claim.claimant.server_id, "owner");
  // Nor is the build recorded as interrupted, which servers do with claims that are over.
  EXPECT_FALSE((*other.Find("m", "b"))->over());
  EXPECT_FALSE(other.List("m")->front().over());
  EXPECT_TRUE(owner.Take("m", "b", "spec", absl::Minutes(1))->ours);
  Pass(absl::Hours(1));
  EXPECT_TRUE((*other.Find("m", "b"))->over());
  EXPECT_TRUE(other.List("m")->front().over());
  EXPECT_TRUE(other.Take("m", "b", "spec", absl::Minutes(1))->ours);
}

}  // namespace
}  // namespace phimap::testing
