#include "tests/contract/garbage_contract.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/store/garbage_collector.h"
#include "server/store/sha256.h"
#include "server/store/store.h"

namespace phimap::testing {
namespace {

constexpr absl::Duration kGrace = absl::Hours(1);

// Blobs that run `after_write` once. This happens during a publish, after its write of the blob and
// before its database transaction.
class RacingBlobs : public Blobs {
 public:
  explicit RacingBlobs(std::shared_ptr<Blobs> base) : base_(std::move(base)) {}
  absl::Status Write(absl::string_view digest, absl::string_view content) override {
    ++writes;
    const absl::Status written = base_->Write(digest, content);
    if (after_write) std::exchange(after_write, nullptr)();
    return written;
  }
  absl::StatusOr<std::string> Read(absl::string_view digest, int64_t size_bytes) override {
    return base_->Read(digest, size_bytes);
  }
  absl::StatusOr<std::string> ReadRange(absl::string_view digest, int64_t size_bytes,
                                        int64_t offset, int64_t bytes) override {
    return base_->ReadRange(digest, size_bytes, offset, bytes);
  }
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(absl::string_view digest,
                                                             int64_t size_bytes) override {
    return base_->OpenReader(digest, size_bytes);
  }
  absl::Status Remove(absl::string_view digest) override { return base_->Remove(digest); }
  absl::StatusOr<std::vector<StoredBlob>> List() override { return base_->List(); }
  absl::StatusOr<bool> Contains(SqlSession& session, absl::string_view digest) override {
    return base_->Contains(session, digest);
  }
  absl::StatusOr<bool> RemoveUnused(SqlSession& session, absl::string_view digest,
                                    absl::Time before) override {
    return base_->RemoveUnused(session, digest, before);
  }
  absl::Status SetAside(absl::string_view digest) override { return base_->SetAside(digest); }
  absl::StatusOr<int64_t> RemoveRemains(absl::Time before) override {
    return base_->RemoveRemains(before);
  }

  std::function<void()> after_write;
  int writes = 0;

 private:
  const std::shared_ptr<Blobs> base_;
};

// A store and a garbage collector on the same database and blobs, as two processes would have them.
class Fixture {
 public:
  explicit Fixture(GarbageHarness& harness)
      : harness_(harness),
        blobs(std::make_shared<RacingBlobs>(harness.blobs())),
        store(harness.database(), blobs),
        collector(harness.database(), harness.blobs(), "the test") {}

  VersionRecord MustPublish(const std::string& build_id, const std::string& artifact) {
    PublishRequest request;
    request.version.mapping = "letters";
    request.version.serving_type = "float32";
    request.build_id = build_id;
    const absl::StatusOr<VersionRecord> version = store.Publish(request, artifact);
    EXPECT_TRUE(version.ok()) << version.status();
    return version.value_or(VersionRecord());
  }
  GarbageReport MustRun(absl::Duration grace = kGrace) {
    const absl::StatusOr<GarbageReport> report = collector.Run(grace);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value_or(GarbageReport());
  }
  bool IsThere(const std::string& artifact) {
    return blobs->Read(Sha256Hex(artifact), static_cast<int64_t>(artifact.size())).ok();
  }
  void Sql(const std::string& statement) {
    const absl::Status done = harness_.database()->Write(
        [&](SqlSession& session) { return session.Run(statement).status(); },
        [](SqlSession&) { return true; }, "the test wrote");
    EXPECT_TRUE(done.ok()) << done;
  }
  // Makes the blob of `artifact` older by `age`, and also all entries in the list of unreferenced
  // artifacts.
  void Age(const std::string& artifact, absl::Duration age) {
    harness_.AgeBlob(Sha256Hex(artifact), age);
    Sql(absl::StrCat("UPDATE unreferenced SET since_us = since_us - ",
                     absl::ToInt64Microseconds(age)));
  }

 private:
  GarbageHarness& harness_;

 public:
  const std::shared_ptr<RacingBlobs> blobs;
  Store store;
  GarbageCollector collector;
};

}  // namespace

TEST_P(GarbageContractTest, ADeletedArtifactStaysForTheGraceTimeAndThenGoes) {
  Fixture f(*harness_);
  f.MustPublish("build-1", "kept");
  f.MustPublish("build-2", "deleted");
  ASSERT_TRUE(f.store.DeleteVersion("letters", 2).ok());
  EXPECT_EQ(f.MustRun().removed, 0);
  f.Age("deleted", kGrace - absl::Minutes(5));
  harness_->AgeBlob(Sha256Hex("kept"), 2 * kGrace);
  EXPECT_EQ(f.MustRun().removed, 0);
  // A loader that looked up the version before its deletion may still be reading the artifact.
  EXPECT_TRUE(f.IsThere("deleted"));
  f.Age("deleted", absl::Minutes(6));
  harness_->AgeBlob(Sha256Hex("deleted"), kGrace + absl::Minutes(1));
  EXPECT_EQ(f.MustRun().removed, 1);
  EXPECT_FALSE(f.IsThere("deleted"));
  EXPECT_TRUE(f.IsThere("kept"));
  EXPECT_EQ(f.MustRun().removed, 0);
}

TEST_P(GarbageContractTest, ABlobThatACrashLeftIsListedAndGoesAGraceTimeLater) {
  Fixture f(*harness_);
  ASSERT_TRUE(f.blobs->Write(Sha256Hex("orphan"), "orphan").ok());
  harness_->AgeBlob(Sha256Hex("orphan"), absl::Hours(100));
  const GarbageReport first = f.MustRun();
  EXPECT_EQ(first.listed, 1);
  EXPECT_EQ(first.removed, 0);
  EXPECT_TRUE(f.IsThere("orphan"));
  f.Age("orphan", absl::Hours(100));
  const GarbageReport second = f.MustRun();
  EXPECT_EQ(second.listed, 0);
  EXPECT_EQ(second.removed, 1);
  EXPECT_FALSE(f.IsThere("orphan"));
}

TEST_P(GarbageContractTest, AnArtifactThatAnotherVersionHasIsNeverListed) {
  Fixture f(*harness_);
  f.MustPublish("build-1", "shared");
  f.MustPublish("build-2", "shared");
  ASSERT_TRUE(f.store.DeleteVersion("letters", 1).ok());
  f.Age("shared", 2 * kGrace);
  EXPECT_EQ(f.MustRun().removed, 0);
  EXPECT_EQ(f.MustRun(absl::ZeroDuration()).removed, 0);
  EXPECT_TRUE(f.IsThere("shared"));
  // Deleting a mapping lists an artifact only once, even if several of its versions share it.
  ASSERT_TRUE(f.store.DeleteMapping("letters").ok());
  EXPECT_EQ(f.MustRun(absl::ZeroDuration()).removed, 1);
}

TEST_P(GarbageContractTest, AnArtifactThatIsPublishedAgainIsTakenOffTheList) {
  Fixture f(*harness_);
  f.MustPublish("build-1", "artifact");
  ASSERT_TRUE(f.store.DeleteVersion("letters", 1).ok());
  f.MustPublish("build-2", "artifact");
  f.Age("artifact", 2 * kGrace);
  EXPECT_EQ(f.MustRun().removed, 0);
  EXPECT_TRUE(f.IsThere("artifact"));
}

// When the publish writes the blob, an old one with the same content already exists. It is
// collected before the commit.
TEST_P(GarbageContractTest, APublishWhoseBlobIsCollectedBeforeItsCommitWritesItAgain) {
  Fixture f(*harness_);
  f.MustPublish("build-1", "artifact");
  ASSERT_TRUE(f.store.DeleteVersion("letters", 1).ok());
  f.blobs->writes = 0;
  f.blobs->after_write = [&] {
    f.Age("artifact", 2 * kGrace);
    EXPECT_EQ(f.MustRun().removed, 1);
    EXPECT_FALSE(f.IsThere("artifact"));
  };
  EXPECT_EQ(f.MustPublish("build-2", "artifact").number, 2);
  EXPECT_EQ(f.blobs->writes, 2);
  EXPECT_TRUE(f.IsThere("artifact"));
  // An import also writes its blob again.
  ASSERT_TRUE(f.store.DeleteVersion("letters", 2).ok());
  f.blobs->after_write = [&] { EXPECT_EQ(f.MustRun(absl::ZeroDuration()).removed, 1); };
  VersionRecord version{.mapping = "spam", .serving_type = "float32"};
  EXPECT_TRUE(f.store.Import(version, "artifact").ok());
  EXPECT_TRUE(f.IsThere("artifact"));
}

TEST_P(GarbageContractTest, AListedArtifactThatWasWrittenWithinTheGraceTimeStays) {
  Fixture f(*harness_);
  f.MustPublish("build-1", "artifact");
  ASSERT_TRUE(f.store.DeleteVersion("letters", 1).ok());
  f.Age("artifact", 2 * kGrace);
  ASSERT_TRUE(f.blobs->Write(Sha256Hex("artifact"), "artifact").ok());
  EXPECT_EQ(f.MustRun().removed, 0);
  harness_->AgeBlob(Sha256Hex("artifact"), 2 * kGrace);
  EXPECT_EQ(f.MustRun().removed, 1);
}

TEST_P(GarbageContractTest, AHoldKeepsEverythingUntilItEnds) {
  Fixture f(*harness_);
  f.MustPublish("build-1", "artifact");
  ASSERT_TRUE(f.store.DeleteVersion("letters", 1).ok());
  f.Sql("INSERT INTO holds SELECT 'backup-1', 'a backup', now_us + 60000000 FROM clock");
  for (const absl::Duration grace : {kGrace, absl::ZeroDuration()}) {
    f.Age("artifact", 2 * kGrace);
    const GarbageReport report = f.MustRun(grace);
    EXPECT_EQ(report.removed, 0);
    EXPECT_EQ(report.held, 1);
  }
  EXPECT_TRUE(f.IsThere("artifact"));
  f.Sql("UPDATE holds SET end_time_us = (SELECT now_us FROM clock)");
  EXPECT_EQ(f.MustRun().removed, 1);
}

TEST_P(GarbageContractTest, WhoHasTheMaintenanceLeaseCollectsUntilItExpires) {
  Fixture f(*harness_);
  f.MustPublish("build-1", "artifact");
  ASSERT_TRUE(f.store.DeleteVersion("letters", 1).ok());
  f.Sql("INSERT INTO leases SELECT 'maintenance', 'phimapd 1', now_us + 60000000 FROM clock");
  EXPECT_EQ(f.MustRun(absl::ZeroDuration()).busy_holder, "phimapd 1");
  EXPECT_TRUE(f.IsThere("artifact"));
  f.Sql("UPDATE leases SET end_time_us = (SELECT now_us FROM clock)");
  const GarbageReport report = f.MustRun(absl::ZeroDuration());
  EXPECT_EQ(report.busy_holder, "");
  EXPECT_EQ(report.removed, 1);
}

TEST_P(GarbageContractTest, APartOfAnUploadGoesOnlyWhenItIsOld) {
  Fixture f(*harness_);
  harness_->LeavePart(kGrace - absl::Minutes(5));
  f.MustRun();
  EXPECT_TRUE(harness_->HasPart());
  harness_->LeavePart(kGrace + absl::Minutes(5));
  f.MustRun();
  f.Sql("UPDATE unreferenced SET since_us = 0");
  f.MustRun();
  EXPECT_FALSE(harness_->HasPart());
}

}  // namespace phimap::testing
