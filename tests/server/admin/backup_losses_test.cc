// Artifacts that copying a store's files by hand, database first, would lose.
#include <filesystem>

#include "server/admin/store_restore.h"
#include "tests/server/admin/looked_after.h"

namespace phimap::admin_test {
namespace {

class BackupLossesTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    store_ = place_.Serve();
    ASSERT_NE(store_, nullptr);
    FillStore(*store_);
  }
  // Deletes letters@4 and removes its artifact, as far as nobody holds it.
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
    const auto collected =
        GarbageCollector(opened.database, opened.blobs, "another").Run(absl::ZeroDuration());
    ASSERT_TRUE(collected.ok()) << collected.status();
    EXPECT_EQ(collected->removed > 0, without_holds);
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
  ASSERT_TRUE(Restore(backup_, other.address(), PosixFileSystem(), kGoOn).ok());
  const std::unique_ptr<Store> again = other.Serve();
  const auto version = again->GetVersion("letters", 4);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*again->ReadArtifactOf(*version), ArtifactOf("letters4"));
}

// The loss that the hold prevents.
TEST_P(BackupLossesTest, WithoutItsHoldABackupLosesThatArtifactAndSaysSo) {
  const auto report = BackUpWhile([&] { DeleteAndCollect(/*without_holds=*/true); });
  EXPECT_EQ(ReasonIn(report.status()), "ARTIFACT_DAMAGED") << report.status();
  EXPECT_FALSE(std::filesystem::exists(backup_ + "/MANIFEST"));
}

TEST_P(BackupLossesTest, TheHoldEndsWithTheBackup) {
  ASSERT_TRUE(BackUpWhile([] {}).ok());
  DeleteAndCollect(/*without_holds=*/true);  // There is none to remove.
  const auto rows = place_.Open().database->Read([](SqlSession& session) -> absl::Status {
    const auto holds = session.Run("SELECT 1 FROM holds");
    EXPECT_TRUE(holds.ok() && holds->empty());
    return holds.status();
  });
  EXPECT_TRUE(rows.ok()) << rows;
}

// The artifacts that were built since would be garbage to yesterday's tables, and their numbers
// given out again to others: so a backup is restored as a whole, beside what is there.
TEST_P(BackupLossesTest, YesterdaysTablesAreNotPutOnTodaysArtifacts) {
  ASSERT_TRUE(BackUpWhile([] {}).ok());
  const auto today = store_->Publish(RequestFor("today"), "today");
  ASSERT_TRUE(today.ok());
  const auto restored = Restore(backup_, place_.address(), PosixFileSystem(), kGoOn);
  EXPECT_EQ(ReasonIn(restored.status()), "STORE_NOT_EMPTY") << restored.status();
  EXPECT_EQ(*store_->ReadArtifactOf(*today), "today");
  // Restored elsewhere it is yesterday, and its revisions are not taken for today's.
  const Place other(GetParam());
  ASSERT_TRUE(Restore(backup_, other.address(), PosixFileSystem(), kGoOn).ok());
  const std::unique_ptr<Store> yesterday = other.Serve();
  EXPECT_TRUE(absl::IsNotFound(yesterday->GetVersion("letters", today->number).status()));
  EXPECT_TRUE(yesterday->ChangesSince(store_->ChangesSince({})->revision)->whole);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BackupLossesTest, ::testing::Values(Kind::kSqlite, Kind::kPostgres),
                         [](const auto& info) { return KindName(info.param); });

// SQLite would take the log for that of the restored file, and apply its pages.
TEST(BackupLossTest, ARestoreBesideTheLogOfAnotherDatabaseIsRefused) {
  const Place place(Kind::kSqlite);
  const std::unique_ptr<Store> store = place.Serve();
  FillStore(*store);
  TemporaryDirectory directory;
  ASSERT_TRUE(
      BackUp(place.Open(), directory.path() + "/backup", "the test", PosixFileSystem(), kGoOn)
          .ok());
  for (const char* left : {"phimap.sqlite-wal", "phimap.sqlite-shm", "lock"}) {
    const std::string target = directory.path() + "/target";
    std::filesystem::create_directory(target);
    WriteWhole(absl::StrCat(target, "/", left), "of another database");
    const auto restored = Restore(directory.path() + "/backup", target, PosixFileSystem(), kGoOn);
    EXPECT_EQ(ReasonIn(restored.status()), "STORE_NOT_EMPTY") << restored.status();
    EXPECT_THAT(std::string(restored.status().message()), ::testing::HasSubstr(left));
    std::filesystem::remove_all(target);
  }
}

}  // namespace
}  // namespace phimap::admin_test
