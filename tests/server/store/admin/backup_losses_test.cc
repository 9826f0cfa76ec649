// Checks that a backup keeps every artifact. A manual copy that takes the database first and the
// artifacts later would lose some.
#include <filesystem>

#include "server/store/admin/store_backup.h"
#include "tests/server/store/admin/filled_store.h"
#include "tests/support/matchers.h"

namespace phimap::admin_test {
namespace {

class BackupLossesTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    store_ = place_.Serve();
    ASSERT_NE(store_, nullptr);
    FillStore(*store_);
  }
  // Deletes letters@4 and collects garbage. With `without_holds`, deletes all holds first, and
  // expects that artifacts are removed; otherwise expects that none is removed.
  void DeleteAndCollect(bool without_holds) {
    const AdminStore opened = place_.Open();
    if (without_holds) {
      ASSERT_TRUE(opened.database
                      ->WriteAside([](SqlSession& session) {
                        return session.Run("DELETE FROM holds").status();
                      })
                      .ok());
    }
    ASSERT_TRUE(store_->DeleteVersion("letters", 4).ok());
    const auto collected = GarbageCollector(opened.database, opened.blobs, "another")
                               .Run(absl::ZeroDuration())
                               .value();
    EXPECT_EQ(collected.removed > 0, without_holds);
  }
  absl::StatusOr<BackupReport> BackUpWhile(const std::function<void()>& at_the_first_artifact) {
    return BackUp(place_.Open(), backup_, "the test", PosixFileSystem(),
                  [&](int64_t done, int64_t) {
                    if (done == 0) at_the_first_artifact();
                    return true;
                  });
  }

  Place place_{GetParam()};
  TemporaryDirectory directory_;
  const std::string backup_ = directory_.path() + "/backup";
  std::unique_ptr<Store> store_;
};

TEST_P(BackupLossesTest, AVersionThatIsDeletedBetweenTheRowsAndTheArtifactsIsInTheBackup) {
  const auto report = BackUpWhile([&] { DeleteAndCollect(/*without_holds=*/false); });
  ASSERT_TRUE(report.ok()) << report.status();
  const Place other(Kind::kSqlite);
  ASSERT_TRUE(Restore(backup_, other.address(), PosixFileSystem(), kNeverCancel).ok());
  const std::unique_ptr<Store> again = other.Serve();
  const auto version = again->GetVersion("letters", 4).value();
  EXPECT_EQ(*again->ReadArtifactOf(version), ArtifactOf("letters4"));
}

// Shows the loss that a backup's hold prevents. This test deletes all holds while the backup runs.
TEST_P(BackupLossesTest, WithoutItsHoldABackupLosesThatArtifactAndSaysSo) {
  const auto report = BackUpWhile([&] { DeleteAndCollect(/*without_holds=*/true); });
  EXPECT_EQ(ReasonIn(report.status()), "ARTIFACT_DAMAGED") << report.status();
  EXPECT_FALSE(std::filesystem::exists(backup_ + "/MANIFEST"));
}

TEST_P(BackupLossesTest, TheHoldEndsWithTheBackup) {
  ASSERT_TRUE(BackUpWhile([] {}).ok());
  DeleteAndCollect(/*without_holds=*/true);  // The backup has ended, so no hold is left to delete.
  const auto rows = place_.Open().database->Read([](SqlSession& session) -> absl::Status {
    const auto holds = session.Run("SELECT 1 FROM holds");
    EXPECT_TRUE(holds.ok() && holds->empty());
    return holds.status();
  });
  EXPECT_TRUE(rows.ok()) << rows;
}

// If the tables of an old backup were restored into a newer store, the artifacts built since the
// backup would be garbage, and their version numbers would be given out again. Therefore a backup
// is restored only as a whole, into an empty store.
TEST_P(BackupLossesTest, YesterdaysTablesAreNotPutOnTodaysArtifacts) {
  ASSERT_TRUE(BackUpWhile([] {}).ok());
  const auto today = store_->Publish(RequestFor("today"), "today").value();
  const auto restored = Restore(backup_, place_.address(), PosixFileSystem(), kNeverCancel);
  EXPECT_EQ(ReasonIn(restored.status()), "STORE_NOT_EMPTY") << restored.status();
  EXPECT_EQ(*store_->ReadArtifactOf(today), "today");
  // A store that is restored elsewhere shows yesterday's state, and does not recognize the
  // revisions of the current store.
  const Place other(GetParam());
  ASSERT_TRUE(Restore(backup_, other.address(), PosixFileSystem(), kNeverCancel).ok());
  const std::unique_ptr<Store> yesterday = other.Serve();
  EXPECT_TRUE(absl::IsNotFound(yesterday->GetVersion("letters", today.number).status()));
  EXPECT_TRUE(yesterday->ChangesSince(store_->ChangesSince({})->revision)->whole);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BackupLossesTest, ::testing::Values(Kind::kSqlite, Kind::kPostgres),
                         [](const auto& info) { return KindName(info.param); });

// If the write-ahead log of another database were left beside the restored file, SQLite would take
// it for the restored file's own log and apply its pages.
TEST(BackupLossTest, ARestoreBesideTheLogOfAnotherDatabaseIsRefused) {
  const Place place(Kind::kSqlite);
  const std::unique_ptr<Store> store = place.Serve();
  FillStore(*store);
  TemporaryDirectory directory;
  ASSERT_TRUE(BackUp(place.Open(), directory.path() + "/backup", "the test", PosixFileSystem(),
                     kNeverCancel)
                  .ok());
  for (const char* left : {"phimap.sqlite-wal", "phimap.sqlite-shm", "lock"}) {
    const std::string target = directory.path() + "/target";
    std::filesystem::create_directory(target);
    WriteWhole(absl::StrCat(target, "/", left), "of another database");
    const auto restored =
        Restore(directory.path() + "/backup", target, PosixFileSystem(), kNeverCancel);
    EXPECT_EQ(ReasonIn(restored.status()), "STORE_NOT_EMPTY") << restored.status();
    EXPECT_THAT(std::string(restored.status().message()), HasSubstr(left));
    std::filesystem::remove_all(target);
  }
}

}  // namespace
}  // namespace phimap::admin_test
