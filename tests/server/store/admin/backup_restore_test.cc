// Tests backups of SQLite and PostgreSQL stores. Each backup is restored into a SQLite store and
// into a PostgreSQL store.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "server/store/admin/backup_manifest.h"
#include "server/store/admin/store_backup.h"
#include "tests/server/store/admin/filled_store.h"
#include "tests/support/matchers.h"

namespace phimap::admin_test {
namespace {

namespace fs = std::filesystem;

struct Way {
  Kind from;
  Kind to;
};

class BackupRestoreTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    store_ = from_.Serve();
    ASSERT_NE(store_, nullptr);
    FillStore(*store_);
  }
  absl::StatusOr<BackupReport> MakeBackup(const AdminProgress& progress = kNeverCancel) {
    return BackUp(from_.Open(), backup_, "the test", PosixFileSystem(), progress);
  }

  Place from_{GetParam().from};
  Place to_{GetParam().to};
  TemporaryDirectory directory_;
  const std::string backup_ = directory_.path() + "/backup";
  std::unique_ptr<Store> store_;
};

TEST_P(BackupRestoreTest, ARestoredStoreShowsAllThatTheFirstDid) {
  const auto report = MakeBackup().value();
  EXPECT_EQ(report.versions, 4);
  EXPECT_EQ(report.artifacts, 3);
  EXPECT_EQ(report.aliases, 1);
  const auto restored = Restore(backup_, to_.address(), PosixFileSystem(), kNeverCancel).value();
  EXPECT_EQ(restored.bytes, report.bytes);
  const std::unique_ptr<Store> again = to_.Serve();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(Shown(*again), Shown(*store_));
  // New versions get the numbers that they would have got in the first store, even after versions
  // or mappings were deleted.
  EXPECT_EQ(again->Publish(RequestFor("next"), "next")->number, 5);
  EXPECT_EQ(again->Publish(RequestFor("next", "gone"), "next")->number, 3);
  // The revisions of the restored store have other ids, so that it does not mistake those of the
  // first store for its own.
  const Revision before = store_->ChangesSince({})->revision;
  const Revision after = again->ChangesSince({})->revision;
  EXPECT_FALSE(*again->IsInHistory(before));
  EXPECT_FALSE(*store_->IsInHistory(after));
  EXPECT_GE(after.number, before.number);
}

// A restored version gets its whole TTL again, because the backup may be restored precisely to get
// back a version that has expired since.
TEST_P(BackupRestoreTest, ARestoredVersionHasItsWholeTtlAgain) {
  constexpr absl::Duration kTtl = absl::Hours(1);
  PublishRequest request = RequestFor("a trial");
  request.version.ttl = kTtl;
  const VersionRecord trial = store_->Publish(request, "trial").value();
  ASSERT_TRUE(MakeBackup().ok());
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(Restore(backup_, to_.address(), PosixFileSystem(), kNeverCancel).ok());
  const std::unique_ptr<Store> again = to_.Serve();
  const VersionRecord version = again->GetVersion("letters", trial.number).value();
  EXPECT_EQ(version.ttl, kTtl);
  EXPECT_GE(version.expire_time, begin + kTtl - absl::Microseconds(1));
  EXPECT_EQ(again->GetVersion("letters", 1)->expire_time, absl::InfiniteFuture());
}

TEST_P(BackupRestoreTest, ABackupThatIsMadeWhileServersWorkIsOfOneMoment) {
  std::atomic<bool> over{false};
  std::thread writer([&] {
    // Publishes version n + 1, moves the alias to n + 1, and then deletes n. The alias points to an
    // existing version at every moment.
    for (int i = 5; !over; ++i) {
      ASSERT_TRUE(store_->Publish(RequestFor(absl::StrCat("more-", i)), absl::StrCat(i)).ok());
      ASSERT_TRUE(store_->SetAlias("letters", "moving", i, "").ok());
      if (i == 5) continue;
      ASSERT_TRUE(store_->DeleteVersion("letters", i - 1, Rollbacks::kGiveUp).ok());
    }
  });
  for (int i = 0; i < 5; ++i) {
    const std::string folder = absl::StrCat(backup_, i);
    const auto report =
        BackUp(from_.Open(), folder, "the test", PosixFileSystem(), [](int64_t, int64_t) {
          std::this_thread::yield();
          return true;
        });
    ASSERT_TRUE(report.ok()) << report.status();
    const Place place(GetParam().to);
    ASSERT_TRUE(Restore(folder, place.address(), PosixFileSystem(), kNeverCancel).ok());
    const std::unique_ptr<Store> again = place.Serve();
    const auto moving = again->GetAliasedVersion("letters", "moving");
    if (moving.ok()) {
      EXPECT_EQ(*again->ReadArtifactOf(*moving), absl::StrCat(moving->number));
    }
    EXPECT_THAT(Shown(*again), Not(HasSubstr("DATA_LOSS")));
  }
  over = true;
  writer.join();
}

TEST_P(BackupRestoreTest, WhatWasCancelledIsNoBackup) {
  const auto report = MakeBackup([](int64_t done, int64_t) { return done < 2; });
  EXPECT_TRUE(absl::IsCancelled(report.status())) << report.status();
  const auto restored = Restore(backup_, to_.address(), PosixFileSystem(), kNeverCancel);
  EXPECT_EQ(ReasonIn(restored.status()), "BACKUP_NOT_FOUND") << restored.status();
}

TEST_P(BackupRestoreTest, ADamagedBackupIsRefusedBeforeAnythingIsWritten) {
  ASSERT_TRUE(MakeBackup().ok());
  const auto manifest = *ReadManifest(backup_, PosixFileSystem());
  for (const auto& [name, digest] : manifest) {
    const std::string path = absl::StrCat(backup_, "/", name);
    const std::string whole = ReadWhole(path);
    std::string damaged = whole;
    damaged[damaged.size() / 2] ^= 1;
    WriteWhole(path, damaged);
    const auto restored = Restore(backup_, to_.address(), PosixFileSystem(), kNeverCancel);
    EXPECT_EQ(ReasonIn(restored.status()), "BACKUP_DAMAGED") << name << restored.status();
    fs::rename(path, path + ".away");
    const auto missing = Restore(backup_, to_.address(), PosixFileSystem(), kNeverCancel);
    EXPECT_EQ(ReasonIn(missing.status()), "BACKUP_DAMAGED") << name << missing.status();
    fs::remove(path + ".away");
    WriteWhole(path, whole);
  }
  // The failed attempts wrote nothing into the store, so the whole backup can now be restored into
  // it.
  EXPECT_TRUE(Restore(backup_, to_.address(), PosixFileSystem(), kNeverCancel).ok());
}

TEST_P(BackupRestoreTest, AStoreThatIsThereIsNotOverwritten) {
  ASSERT_TRUE(MakeBackup().ok());
  const std::unique_ptr<Store> other = to_.Serve();
  ASSERT_TRUE(other->Publish(RequestFor("other"), "other").ok());
  const std::string before = Shown(*other);
  const auto restored = Restore(backup_, to_.address(), PosixFileSystem(), kNeverCancel);
  EXPECT_EQ(ReasonIn(restored.status()), "STORE_NOT_EMPTY") << restored.status();
  EXPECT_EQ(Shown(*other), before);
  // A backup into a folder that already holds a backup is refused, too.
  EXPECT_EQ(ReasonIn(MakeBackup().status()), "STORE_NOT_EMPTY");
}

TEST_P(BackupRestoreTest, OtherToolsCanCheckTheManifest) {
  ASSERT_TRUE(MakeBackup().ok());
  EXPECT_EQ(
      std::system(absl::StrCat("cd ", backup_, " && sha256sum --quiet --check MANIFEST").c_str()),
      0);
  EXPECT_THAT(ReadWhole(backup_ + "/aliases.txt"), HasSubstr("letters@prod\t3\t"));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, BackupRestoreTest,
    ::testing::Values(Way{Kind::kSqlite, Kind::kSqlite}, Way{Kind::kSqlite, Kind::kPostgres},
                      Way{Kind::kPostgres, Kind::kSqlite}, Way{Kind::kPostgres, Kind::kPostgres}),
    [](const auto& info) { return KindName(info.param.from) + "To" + KindName(info.param.to); });

}  // namespace
}  // namespace phimap::admin_test
