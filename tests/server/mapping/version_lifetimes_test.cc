// Tests that a version lives as long as it is used. The store is real, and the test moves its
// clock.
#include "server/mapping/version_lifetimes.h"

#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/plan/artifact.h"
#include "core/thread/steady_time.h"
#include "gtest/gtest.h"
#include "server/build/build_manager.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/plans.h"

namespace phimap::testing {
namespace {

constexpr absl::Duration kTtl = absl::Hours(10);

class VersionLifetimesTest : public ::testing::Test {
 protected:
  VersionLifetimesTest() { EXPECT_TRUE(registry_.CatchUp().ok()); }
  ~VersionLifetimesTest() override { builds_.Drain(BuildManager::Clock::now()); }

  // Publishes the next version of "trial".
  void Publish(absl::Duration ttl = kTtl) {
    Artifact artifact;
    artifact.plan = MakePlan({});
    PublishRequest request;
    request.version.mapping = "trial";
    request.version.serving_type = "float32";
    request.version.ttl = ttl;
    request.build_id = absl::StrCat("b", ++published_);
    request.spec_digest = "spec";
    const VersionRecord version = store_->Publish(request, *EncodeArtifact(artifact)).value();
    ASSERT_TRUE(registry_.CatchUp().ok());
  }
  // Acquires a version; the handle is empty if there is no such version.
  VersionHandle Acquire(const std::string& reference) {
    VersionHandle acquired;
    Mutex mutex;
    CondVar came;
    bool here = false;
    registry_.Acquire(reference, [&](absl::StatusOr<VersionHandle> version) {
      MutexLock lock(&mutex);
      if (version.ok()) acquired = *std::move(version);
      here = true;
      came.NotifyAll();
    });
    MutexLock lock(&mutex);
    while (!here) came.Wait(&mutex);
    return acquired;
  }
  // Uses the version the way a request that maps one row uses it.
  void Use(const std::string& reference) {
    const absl::Time now = SteadyNow();
    Acquire(reference).tally().RequestEnded(/*ok=*/true, /*rows=*/1, now, now, SteadyNow());
  }
  void RecordUses() {
    const absl::Status recorded = lifetimes_.RecordUses();
    ASSERT_TRUE(recorded.ok()) << recorded;
  }
  bool IsThereAfter(absl::Duration duration) {
    clock_.now += duration;
    const absl::Status deleted = lifetimes_.DeleteExpired();
    EXPECT_TRUE(deleted.ok()) << deleted;
    const bool there = store_->GetVersion("trial", 1).ok();
    EXPECT_EQ(static_cast<bool>(Acquire("trial@1")), there);
    return there;
  }

  TemporaryFolder folder_;
  ManualClock clock_;
  const std::unique_ptr<SqliteStore> store_ =
      *SqliteStore::Open({.data_dir = folder_.path(),
                          .steady = [this] { return clock_.now; },
                          .busy_timeout = absl::Milliseconds(1)},
                         PosixFileSystem());
  Metrics metrics_;
  Logger logger_{LogLevel::kOff};
  VersionRegistry registry_{VersionRegistry::Options(), *store_, metrics_.registry(), logger_};
  TaskPool store_pool_{"store calls", 1, 64};
  BuildManager builds_{BuildManager::Options(), *store_, registry_, store_pool_,
                       metrics_.build(),        logger_};
  MappingChanges changes_{*store_, registry_, builds_, logger_};
  VersionLifetimes lifetimes_{*store_, registry_, changes_, logger_};
  int published_ = 0;
};

TEST_F(VersionLifetimesTest, AVersionThatNobodyUsesIsGoneWhenItsTimeIsOver) {
  Publish();
  clock_.now += kTtl - absl::Seconds(1);
  RecordUses();
  EXPECT_TRUE(store_->GetVersion("trial", 1).ok());
  EXPECT_FALSE(IsThereAfter(absl::Seconds(1)));
}

TEST_F(VersionLifetimesTest, AVersionThatMapsRowsLivesOnForItsTtl) {
  Publish();
  Acquire("trial@1");
  RecordUses();
  for (int i = 0; i < 3; ++i) {
    clock_.now += 0.9 * kTtl;
    Use("trial@1");
    RecordUses();
  }
  EXPECT_TRUE(IsThereAfter(kTtl - absl::Seconds(1)));
  EXPECT_FALSE(IsThereAfter(kTtl));
}

TEST_F(VersionLifetimesTest, AUseCountsOnce) {
  Publish();
  Use("trial@1");
  clock_.now += kTtl / 2;
  RecordUses();
  const absl::Time expiry = store_->GetVersion("trial", 1)->expire_time;
  EXPECT_EQ(expiry, clock_.now + kTtl);
  clock_.now += kTtl / 2;
  RecordUses();
  RecordUses();
  EXPECT_EQ(store_->GetVersion("trial", 1)->expire_time, expiry);
}

TEST_F(VersionLifetimesTest, LoadingAVersionForSomebodyIsAUse) {
  Publish();
  clock_.now += kTtl / 2;
  Acquire("trial@1");
  RecordUses();
  EXPECT_EQ(store_->GetVersion("trial", 1)->expire_time, clock_.now + kTtl);
}

TEST_F(VersionLifetimesTest, ATtlThatWasSetLaterCountsForAVersionThatIsInMemory) {
  Publish(kTtl / 4);
  Use("trial@1");
  RecordUses();
  ASSERT_TRUE(changes_.KeepVersion("trial", 1, kTtl, "").ok());
  clock_.now += kTtl / 2;
  Use("trial@1");
  RecordUses();
  EXPECT_EQ(store_->GetVersion("trial", 1)->expire_time, clock_.now + kTtl);
}

TEST_F(VersionLifetimesTest, UsesThatCouldNotBeWrittenAreWrittenTheNextTime) {
  Publish();
  Use("trial@1");
  clock_.now += kTtl / 2;
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_.path() + "/phimap.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_FALSE(lifetimes_.RecordUses().ok());
  sqlite3_close(other);
  RecordUses();
  EXPECT_EQ(store_->GetVersion("trial", 1)->expire_time, clock_.now + kTtl);
}

// A grid search fits six candidates on three folds each, and then fits the best candidate once
// more. It publishes 19 versions, and keeps one of them.
TEST_F(VersionLifetimesTest, OfAGridOfTrialsWhatIsKeptIsLeftAndNothingElse) {
  for (int fit = 0; fit < 19; ++fit) {
    PublishRequest request;
    request.version.mapping = absl::StrCat("f2-", fit);
    request.version.serving_type = "float32";
    request.version.ttl = kTtl;
    request.build_id = "b";
    request.spec_digest = "spec";
    ASSERT_TRUE(store_->Publish(request, absl::StrCat("artifact of candidate ", fit % 7)).ok());
  }
  ASSERT_TRUE(changes_.KeepVersion("f2-18", 1, absl::InfiniteDuration(), "").ok());
  clock_.now += kTtl;
  ASSERT_TRUE(lifetimes_.DeleteExpired().ok());
  const std::vector<MappingRecord> left = store_->ListMappings("", 100).value();
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left.front().name, "f2-18");
  CollectGarbage(*store_);
  const std::vector<StoredBlob> blobs = store_->blobs()->List().value();
  ASSERT_EQ(blobs.size(), 1);
  EXPECT_EQ(blobs.front().digest, store_->GetVersion("f2-18", 1)->digest);
}

TEST_F(VersionLifetimesTest, ItsThreadEndsAtOnceAndWritesTheLastUses) {
  Publish();
  Acquire("trial@1");
  RecordUses();
  clock_.now += kTtl / 2;
  {
    VersionLifetimes running(*store_, registry_, changes_, logger_);
    running.Start();
    Use("trial@1");
  }
  EXPECT_EQ(store_->GetVersion("trial", 1)->expire_time, clock_.now + kTtl);
}

}  // namespace
}  // namespace phimap::testing
