#include "server/store/sqlite/sqlite_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/store/sha256.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

namespace fs = std::filesystem;

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteStoreTest() { Open(); }

  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  void Open() { store_ = MustOpen(directory_.path(), &clock_); }
  void Close() { store_.reset(); }
  absl::Status TryOpen() {
    return SqliteStore::Open(OptionsFor(directory_.path(), &clock_), PosixFileSystem()).status();
  }
  // Expects that opening the store fails with this code and reason, and removes no blob.
  void ExpectRefused(StatusCode code, const std::string& reason) {
    const std::vector<std::string> before = BlobsIn(directory_.path());
    EXPECT_THAT(TryOpen(), IsError(code, reason));
    EXPECT_EQ(BlobsIn(directory_.path()), before);
  }

  TemporaryDirectory directory_;
  ManualClock clock_;
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(SqliteStoreTest, ANumberIsNotReusedAfterItsVersionWasDeleted) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  ASSERT_TRUE(store_->Publish(RequestFor("build-2"), "two").ok());
  Close();
  ExecuteSql(directory_.path(), "DELETE FROM versions");
  Open();
  EXPECT_EQ(store_->GetMapping("letters")->newest_version, 0);
  EXPECT_EQ(store_->GetMapping("letters")->version_count, 0);
  EXPECT_TRUE(absl::IsNotFound(store_->GetVersion("letters", std::nullopt).status()));
  PublishRequest request = RequestFor("build-3");
  request.expected_newest = 0;
  EXPECT_EQ(store_->Publish(request, "three")->number, 3);
}

TEST_F(SqliteStoreTest, ALockedDirectoryIsRefusedNamingTheHolder) {
  const absl::Status status = TryOpen();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("process ", getpid())));
}

TEST_F(SqliteStoreTest, ADirectoryWithoutItsParentIsNotCreated) {
  SqliteStoreOptions options = OptionsFor(Path("missing/data"), &clock_);
  EXPECT_TRUE(absl::IsNotFound(SqliteStore::Open(options, PosixFileSystem()).status()));
}

TEST_F(SqliteStoreTest, DamagedArtifactsAreDataLossAndOthersStillRead) {
  const std::string good = store_->Publish(RequestFor("build-1"), "good")->digest;
  const std::string bad = store_->Publish(RequestFor("build-2"), "bad")->digest;
  const std::string path = Path(absl::StrCat("blobs/", bad.substr(0, 2), "/", bad));
  for (const char* damage : {"bae", "ba", "badd", ""}) {
    WriteWhole(path, damage);
    EXPECT_TRUE(absl::IsDataLoss(store_->ReadArtifact(bad).status())) << damage;
  }
  fs::remove(path);
  EXPECT_TRUE(absl::IsDataLoss(store_->ReadArtifact(bad).status()));
  EXPECT_EQ(*store_->ReadArtifact(good), "good");
  // The same holds when an artifact is read in pieces: the last piece of a damaged artifact is
  // never returned.
  WriteWhole(path, "bae");
  const auto reader = store_->OpenArtifact(bad).value();
  EXPECT_TRUE(reader->Next(2).ok());
  EXPECT_TRUE(absl::IsDataLoss(reader->Next(2).status()));
  WriteWhole(path, "ba");
  EXPECT_TRUE(absl::IsDataLoss((*store_->OpenArtifact(bad))->Next(100).status()));
  fs::remove(path);
  EXPECT_TRUE(absl::IsDataLoss(store_->OpenArtifact(bad).status()));
  // For a range, the store can check that the file contains it, but not that its bytes are right.
  EXPECT_TRUE(absl::IsDataLoss(store_->ReadArtifactRange(bad, 0, 1).status()));
  WriteWhole(path, "ba");
  EXPECT_EQ(store_->ReadArtifactRange(bad, 0, 2).value_or("?"), "ba");
  EXPECT_TRUE(absl::IsDataLoss(store_->ReadArtifactRange(bad, 1, 2).status()));
  // Publishing the same bytes again repairs the artifact, and so does importing them.
  EXPECT_TRUE(store_->Publish(RequestFor("build-3"), "bad").ok());
  EXPECT_EQ(*store_->ReadArtifact(bad), "bad");
  WriteWhole(path, "bae");
  EXPECT_TRUE(store_->Import(RequestFor("").version, "bad").ok());
  EXPECT_EQ(*store_->ReadArtifact(bad), "bad");
}

TEST_F(SqliteStoreTest, ADigestIsNeverAPath) {
  EXPECT_TRUE(absl::IsNotFound(store_->ReadArtifact("../../etc/passwd").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->ReadArtifact("").status()));
}

TEST_F(SqliteStoreTest, StartUpRemovesExpiredBuildsAndNoFileThatAnotherProgramMayBeWriting) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  Close();
  WriteWhole(Path("tmp/7.part"), "half");
  const std::string orphan = Sha256Hex("orphan");
  fs::create_directories(Path("blobs/" + orphan.substr(0, 2)));
  WriteWhole(Path("blobs/" + orphan.substr(0, 2) + "/" + orphan), "orphan");
  clock_.now += kBuildRetention + absl::Seconds(1);
  Open();
  EXPECT_EQ(BlobsIn(directory_.path()).size(), 2);
  EXPECT_EQ(TemporaryFilesIn(directory_.path()).size(), 1);
  EXPECT_EQ(store_->startup_report().removed_builds, 1);
  EXPECT_EQ(ExpectConsistent(store_.get(), directory_.path()), 1);
}

// A revision that is too old to have an id is believed, but names since then are read anew.
TEST_F(SqliteStoreTest, TheIdsOfTheLastHundredThousandChangesAreKept) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  const Revision old = store_->ChangesSince(Revision())->revision;
  Close();
  ExecuteSql(directory_.path(), "UPDATE store SET revision = 100000");
  Open();
  EXPECT_FALSE(*store_->IsInHistory({"another", old.number}));
  EXPECT_FALSE(store_->ChangesSince(old)->whole);
  Close();
  ExecuteSql(directory_.path(), "UPDATE store SET revision = 100001");
  Open();
  EXPECT_TRUE(*store_->IsInHistory(old));
  EXPECT_TRUE(*store_->IsInHistory({"another", old.number}));
  EXPECT_TRUE(store_->ChangesSince(old)->whole);
}

TEST_F(SqliteStoreTest, ANewerSchemaIsRefusedAndLeftAlone) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  Close();
  ExecuteSql(directory_.path(), "PRAGMA user_version = 1000");
  const std::string before = ReadWhole(Path("phimap.sqlite"));
  ExpectRefused(StatusCode::kFailedPrecondition, "STORE_TOO_NEW");
  EXPECT_EQ(ReadWhole(Path("phimap.sqlite")), before);
}

TEST_F(SqliteStoreTest, ADatabaseOfAnotherProgramIsRefused) {
  Close();
  ExecuteSql(directory_.path(), "PRAGMA application_id = 1");
  ExpectRefused(StatusCode::kFailedPrecondition, "STORE_INVALID");
}

TEST_F(SqliteStoreTest, ALostOrEmptyDatabaseIsDataLossAndNoBlobIsRemoved) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  Close();
  const std::string saved = ReadWhole(Path("phimap.sqlite"));
  WriteWhole(Path("phimap.sqlite"), "");
  ExpectRefused(StatusCode::kDataLoss, "DATABASE_LOST");
  fs::remove(Path("phimap.sqlite"));
  ExpectRefused(StatusCode::kDataLoss, "DATABASE_LOST");
  EXPECT_THAT(BlobsIn(directory_.path()), SizeIs(1));
  // The error message advises restoring the database from a backup. This checks that doing so
  // works.
  WriteWhole(Path("phimap.sqlite"), saved);
  Open();
  EXPECT_EQ(ExpectConsistent(store_.get(), directory_.path()), 1);
}

TEST_F(SqliteStoreTest, ALostDatabaseIsNoticedAlsoWhenItHadNoBlobs) {
  Close();
  fs::remove(Path("phimap.sqlite"));
  ExpectRefused(StatusCode::kDataLoss, "DATABASE_LOST");
}

TEST_F(SqliteStoreTest, AWriteAheadLogWithoutItsDatabaseIsDataLoss) {
  Close();
  fs::remove(Path("phimap.sqlite"));
  fs::remove_all(Path("blobs"));
  WriteWhole(Path("phimap.sqlite-wal"), "frames");
  ASSERT_TRUE(absl::IsDataLoss(TryOpen()));
  EXPECT_EQ(ReadWhole(Path("phimap.sqlite-wal")), "frames");
}

TEST_F(SqliteStoreTest, TheDatabaseOfAnotherStoreIsDataLossAndNoBlobIsRemoved) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  Close();
  TemporaryDirectory other;
  MustOpen(other.path(), &clock_).reset();
  WriteWhole(Path("phimap.sqlite"), ReadWhole(other.path() + "/phimap.sqlite"));
  ExpectRefused(StatusCode::kDataLoss, "STORE_MISMATCH");
}

TEST_F(SqliteStoreTest, AnEmptyBlobDirectoryBesideVersionsIsDataLoss) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  Close();
  fs::remove_all(Path("blobs"));
  EXPECT_TRUE(absl::IsDataLoss(TryOpen()));
}

TEST_F(SqliteStoreTest, ADamagedDatabaseIsDataLossAndNoBlobIsRemoved) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  Close();
  const std::string whole = ReadWhole(Path("phimap.sqlite"));
  std::string no_header = whole;
  no_header.replace(0, 16, "not a database!!");
  std::string torn_page = whole;
  torn_page.replace(4096, 4096, std::string(4096, '\x5a'));
  for (const std::string& damaged : {no_header, torn_page, whole.substr(0, 3 * 4096)}) {
    WriteWhole(Path("phimap.sqlite"), damaged);
    ExpectRefused(StatusCode::kDataLoss, "DATABASE_DAMAGED");
    EXPECT_THAT(BlobsIn(directory_.path()), SizeIs(1));
  }
}

// The database holds each digest in the table of versions, in an index on it, and in the audit
// entry of the change that made the version. If a bit of one of the first two is flipped, the
// digest's blob must not look unreferenced. The audit entry refers to no blob.
TEST_F(SqliteStoreTest, AFlippedBitInADigestIsDataLossAndNoBlobIsRemoved) {
  const std::string digest = store_->Publish(RequestFor("build-1"), "one")->digest;
  Close();
  const std::vector<std::string> blobs = BlobsIn(directory_.path());
  const std::string whole = ReadWhole(Path("phimap.sqlite"));
  int copies = 0;
  int refused = 0;
  for (size_t at = whole.find(digest); at != std::string::npos; at = whole.find(digest, at + 1)) {
    ++copies;
    std::string flipped = whole;
    flipped[at + 5] ^= 1;
    WriteWhole(Path("phimap.sqlite"), flipped);
    const absl::Status opened = TryOpen();
    if (!opened.ok()) {
      ++refused;
      EXPECT_THAT(opened, IsError(StatusCode::kDataLoss, "DATABASE_DAMAGED"));
    }
    EXPECT_EQ(BlobsIn(directory_.path()), blobs);
  }
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(copies, 3);
}

TEST_F(SqliteStoreTest, ADatabaseLockedByAnotherProgramIsUnavailableAndNothingIsLeft) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(Path("phimap.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const absl::Status status = store_->Publish(RequestFor("build-2"), "two").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ReasonOf(status), "DATABASE_BUSY");
  EXPECT_GT(DetailOf(status)->retry_delay_ms, 0);
  // Reading works while the database is locked.
  EXPECT_EQ(store_->ReadArtifact(store_->GetVersion("letters", std::nullopt)->digest).value_or("?"),
            "one");
  EXPECT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_EQ(store_->Publish(RequestFor("build-2"), "two")->number, 2);
  EXPECT_EQ(ExpectConsistent(store_.get(), directory_.path()), 2);
}

// If this user is root, the test runs as another user, because permissions do not stop root.
TEST_F(SqliteStoreTest, StartsUnderAParentThatMayBeEnteredAndNotListed) {
  const TemporaryDirectory parent;
  const std::string data_dir = parent.path() + "/data";
  constexpr uid_t kNobody = 65534;
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0) {
      if (chown(parent.path().c_str(), kNobody, kNobody) != 0) _exit(2);
      if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(3);
    }
    if (chmod(parent.path().c_str(), S_IWUSR | S_IXUSR) != 0) _exit(4);
    if (PosixFileSystem()->List(parent.path()).ok()) _exit(5);
    for (const char* build : {"build-1", "build-2"}) {
      absl::StatusOr<std::unique_ptr<SqliteStore>> store =
          SqliteStore::Open(OptionsFor(data_dir, &clock_), PosixFileSystem());
      if (!store.ok()) _exit(6);
      if (!(*store)->Publish(RequestFor(build), build).ok()) _exit(7);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(chmod(parent.path().c_str(), S_IRWXU), 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(MustOpen(data_dir, &clock_)->GetVersion("letters", std::nullopt)->number, 2);
}

TEST_F(SqliteStoreTest, NobodyWhoReadsWaitsForAWriterThatWaitsForAnotherProgram) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), "one").ok());
  Close();
  SqliteStoreOptions options = OptionsFor(directory_.path(), &clock_);
  options.busy_timeout = absl::Seconds(120);
  const std::unique_ptr<SqliteStore> store = *SqliteStore::Open(options, PosixFileSystem());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(Path("phimap.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  std::atomic<bool> published{false};
  std::thread writer([&] {
    EXPECT_TRUE(store->Publish(RequestFor("build-2"), "two").ok());
    published = true;
  });
  // 300 ms is far longer than the writer takes to begin its wait, and far shorter than its busy
  // timeout.
  const absl::Time start = absl::Now();
  while (absl::Now() < start + absl::Milliseconds(300)) {
    EXPECT_EQ(store->GetVersion("letters", std::nullopt)->number, 1);
  }
  EXPECT_LT(absl::Now(), start + absl::Seconds(60));
  EXPECT_FALSE(published);
  EXPECT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  writer.join();
  EXPECT_EQ(store->GetVersion("letters", std::nullopt)->number, 2);
}

TEST_F(SqliteStoreTest, AFailedBuildWithoutAnEndTimeGetsTheStoresClock) {
  BuildRecord record{.mapping = "letters", .build_id = "build-1", .spec_digest = "spec"};
  record.error = absl::InternalError("failed");
  ASSERT_TRUE(store_->RecordFailedBuild(record).ok());
  EXPECT_EQ(store_->GetBuild("letters", "build-1")->end_time, clock_.now);
}

}  // namespace
}  // namespace phimap::testing
