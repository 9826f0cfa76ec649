#include "server/store/admin/store_check.h"

#include <filesystem>

#include "server/store/files/file_blobs.h"
#include "tests/server/store/admin/filled_store.h"
#include "tests/support/matchers.h"

namespace phimap::admin_test {
namespace {

class StoreCheckTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    store_ = place_.Serve();
    ASSERT_NE(store_, nullptr);
    FillStore(*store_);
  }
  // Flips one bit in the middle of the artifact (PostgreSQL: in byte 9 of its chunks).
  void Damage(const std::string& digest) {
    if (GetParam() == Kind::kSqlite) {
      const std::string path = FileBlobs(place_.address(), PosixFileSystem()).BlobPath(digest);
      std::string content = ReadWhole(path);
      content[content.size() / 2] ^= 1;
      WriteWhole(path, content);
      return;
    }
    testing::PostgresServer::Shared().Run(
        "UPDATE phimap.blob_chunks SET content = set_byte(content, 9, get_byte(content, 9) # 1) "
        "WHERE digest = '" +
            digest + "'",
        place_.database());
  }
  void Lose(const std::string& digest) { ASSERT_TRUE(place_.Open().blobs->Remove(digest).ok()); }

  Place place_{GetParam()};
  std::unique_ptr<Store> store_;
};

TEST_P(StoreCheckTest, AStoreThatIsWellIsCountedAndLeftAsItIs) {
  const std::string before = Shown(*store_);
  const auto report = CheckStore(place_.Open(), /*quarantine=*/true, kNeverCancel).value();
  EXPECT_TRUE(report.damaged.empty());
  EXPECT_EQ(report.versions, 4);
  EXPECT_EQ(report.artifacts, 3);
  // These are the artifacts of the deleted version letters@2 and of the deleted mapping.
  EXPECT_EQ(report.unnamed_artifacts, 2);
  EXPECT_EQ(report.bytes, 3 * static_cast<int64_t>(ArtifactOf("letters1").size()));
  EXPECT_EQ(Shown(*store_), before);
}

TEST_P(StoreCheckTest, DamageAndLossAreFoundWithTheVersionsThatTheyConcern) {
  const std::string damaged = store_->GetVersion("letters", 1)->digest;
  const std::string lost = store_->GetVersion("letters", 4)->digest;
  Damage(damaged);
  Lose(lost);
  const auto report = CheckStore(place_.Open(), /*quarantine=*/false, kNeverCancel).value();
  ASSERT_EQ(report.damaged.size(), 2);
  for (const DamagedArtifact& artifact : report.damaged) {
    EXPECT_FALSE(artifact.set_aside);
    if (artifact.digest == damaged) {
      EXPECT_THAT(artifact.versions, ElementsAre("digits@1", "letters@1"));
    } else {
      EXPECT_EQ(artifact.digest, lost);
      EXPECT_THAT(artifact.versions, ElementsAre("letters@4"));
    }
  }
}

TEST_P(StoreCheckTest, WhatIsSetAsideIsMissingUntilItIsImportedAgain) {
  const VersionRecord version = *store_->GetVersion("letters", 4);
  Damage(version.digest);
  const auto report = CheckStore(place_.Open(), /*quarantine=*/true, kNeverCancel).value();
  ASSERT_EQ(report.damaged.size(), 1);
  EXPECT_TRUE(report.damaged[0].set_aside);
  EXPECT_TRUE(absl::IsDataLoss(store_->ReadArtifactOf(version).status()));
  // An artifact that was set aside as damaged is not collected as garbage, because it may be
  // imported again.
  const AdminStore opened = place_.Open();
  ASSERT_TRUE(
      GarbageCollector(opened.database, opened.blobs, "test").Run(absl::ZeroDuration()).ok());
  ASSERT_TRUE(store_->Import(version, ArtifactOf("letters4")).ok());
  EXPECT_EQ(*store_->ReadArtifactOf(version), ArtifactOf("letters4"));
  EXPECT_TRUE(CheckStore(place_.Open(), false, kNeverCancel)->damaged.empty());
}

TEST_P(StoreCheckTest, IsCancelled) {
  const auto report =
      CheckStore(place_.Open(), false, [](int64_t done, int64_t) { return done < 1; });
  EXPECT_TRUE(absl::IsCancelled(report.status())) << report.status();
}

INSTANTIATE_TEST_SUITE_P(Kinds, StoreCheckTest, ::testing::Values(Kind::kSqlite, Kind::kPostgres),
                         [](const auto& info) { return KindName(info.param); });

TEST(AdminStoreTest, WhatIsNoStoreIsRefused) {
  TemporaryDirectory directory;
  const absl::Status empty = OpenAdminStore(directory.path()).status();
  EXPECT_EQ(ReasonIn(empty), "STORE_NOT_FOUND") << empty;
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  const absl::Status missing = OpenAdminStore(directory.path() + "/nowhere").status();
  EXPECT_EQ(ReasonIn(missing), "STORE_NOT_FOUND") << missing;
}

// A server of the previous release may have the store open, so its tables are not migrated.
TEST(AdminStoreTest, TablesOfAnEarlierReleaseAreLeftAsTheyAre) {
  const Place place(Kind::kSqlite);
  place.Serve().reset();
  ExecuteSql(place.address(), "PRAGMA user_version = 3");
  const absl::Status old = OpenAdminStore(place.address()).status();
  EXPECT_EQ(ReasonIn(old), "SCHEMA_TOO_OLD") << old;
}

}  // namespace
}  // namespace phimap::admin_test
