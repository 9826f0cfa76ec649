// Tests that a store of an earlier release is migrated completely or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/store/sha256.h"
#include "server/store/sqlite/sqlite_database.h"
#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/faulty_vfs.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/fault_step.h"

namespace phimap::testing {
namespace {

// The tables of schema version 1, as the first release created them. Never change this text.
constexpr char kSchema1[] = R"sql(
PRAGMA journal_mode = WAL;
CREATE TABLE store (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  store_id TEXT NOT NULL,
  settled_commits INTEGER NOT NULL
) STRICT;
INSERT INTO store VALUES (1, '00112233445566778899aabbccddeeff', 0);
CREATE TABLE mappings (
  name TEXT PRIMARY KEY NOT NULL,
  next_version INTEGER NOT NULL CHECK (next_version >= 1),
  create_time_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE versions (
  mapping TEXT NOT NULL REFERENCES mappings (name),
  number INTEGER NOT NULL CHECK (number >= 1),
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  artifact_size_bytes INTEGER NOT NULL,
  create_time_us INTEGER NOT NULL,
  input_columns INTEGER NOT NULL,
  output_columns INTEGER NOT NULL,
  serving_type TEXT NOT NULL,
  mapping_text TEXT NOT NULL,
  kernel_text TEXT NOT NULL,
  PRIMARY KEY (mapping, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX versions_by_digest ON versions (digest);
CREATE TABLE aliases (
  mapping TEXT NOT NULL,
  alias TEXT NOT NULL,
  version INTEGER NOT NULL,
  etag TEXT NOT NULL,
  PRIMARY KEY (mapping, alias),
  FOREIGN KEY (mapping, version) REFERENCES versions (mapping, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE builds (
  mapping TEXT NOT NULL,
  build_id TEXT NOT NULL,
  spec_digest TEXT NOT NULL,
  rows_received INTEGER NOT NULL,
  end_time_us INTEGER NOT NULL,
  version INTEGER NOT NULL,
  error_code INTEGER NOT NULL,
  error_message TEXT NOT NULL,
  error_detail TEXT,
  PRIMARY KEY (mapping, build_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX builds_by_end_time ON builds (end_time_us);
PRAGMA application_id = 1885890925;
PRAGMA user_version = 1;
)sql";

// Writes a data directory of the first release. It contains one mapping with the versions 1 and 3
// (2 was deleted), and the build of version 3.
void WriteOldStore(const std::string& data_dir) {
  namespace fs = std::filesystem;
  const std::string digest = Sha256Hex("artifact");
  const std::string shard = absl::StrCat(data_dir, "/blobs/", digest.substr(0, 2));
  fs::create_directories(shard);
  fs::create_directories(data_dir + "/tmp");
  WriteWhole(absl::StrCat(shard, "/", digest), "artifact");
  WriteWhole(data_dir + "/blobs/STORE", "00112233445566778899aabbccddeeff");
  std::string sql = absl::StrCat(
      kSchema1, "INSERT INTO mappings VALUES ('letters', 4, 1700000000000000);",
      "INSERT INTO builds VALUES ('letters', 'build-3', 'spec', 10, 1704067200000000, 3, 0, '', "
      "NULL);");
  for (const int number : {1, 3}) {
    absl::StrAppend(&sql, "INSERT INTO versions VALUES ('letters', ", number, ", '", digest,
                    "', 8, 1700000000000000, 16, 256, 'float32', 'f2(landmarks=256)', ",
                    "'rbf(gamma=0.5)');");
  }
  ExecuteSql(data_dir, sql);
}

// Describes the tables of the database file: columns with types, defaults and keys, and the schema
// version.
std::string TablesOf(const std::string& data_dir) {
  sqlite3* connection = nullptr;
  EXPECT_EQ(sqlite3_open((data_dir + "/phimap.sqlite").c_str(), &connection), SQLITE_OK);
  std::string text;
  const auto append = [](void* out, int columns, char** values, char**) {
    for (int i = 0; i < columns; ++i) {
      absl::StrAppend(static_cast<std::string*>(out), values[i] == nullptr ? "NULL" : values[i],
                      "|");
    }
    static_cast<std::string*>(out)->push_back('\n');
    return 0;
  };
  for (const char* sql :
       {"PRAGMA user_version",
        "SELECT m.name, t.* FROM sqlite_schema m, pragma_table_xinfo(m.name) t "
        "WHERE m.type = 'table' ORDER BY m.name, t.cid",
        "SELECT m.name, f.* FROM sqlite_schema m, pragma_foreign_key_list(m.name) f "
        "WHERE m.type = 'table' ORDER BY m.name, f.id, f.seq",
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name"}) {
    EXPECT_EQ(sqlite3_exec(connection, sql, append, &text, nullptr), SQLITE_OK);
  }
  sqlite3_close(connection);
  return text;
}

void ExpectEverythingThere(SqliteStore& store, const std::string& data_dir) {
  const MappingRecord mapping = store.GetMapping("letters").value();
  EXPECT_EQ(mapping.version_count, 2);
  EXPECT_EQ(mapping.create_time, absl::FromUnixSeconds(1'700'000'000));
  EXPECT_EQ(store.GetVersion("letters", 1)->spec_text, "f2(landmarks=256)");
  EXPECT_FALSE(store.GetVersion("letters", 3)->imported);
  EXPECT_EQ(store.GetVersion("letters", 3)->expire_time, absl::InfiniteFuture());
  EXPECT_EQ(store.GetBuild("letters", "build-3")->version, 3);
  EXPECT_EQ(store.ReadArtifact(Sha256Hex("artifact")).value_or("?"), "artifact");
  EXPECT_EQ(BlobsIn(data_dir).size(), 1);
}

TEST(SchemaMigrationTest, AnOldStoreKeepsEverythingAndLearnsWhatIsNew) {
  TemporaryDirectory directory;
  ManualClock clock;
  WriteOldStore(directory.path());
  for (int start = 0; start < 2; ++start) {
    const std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock);
    ExpectEverythingThere(*store, directory.path());
  }
  const std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock);
  EXPECT_TRUE(store->SetAlias("letters", "prod", 3, kNoEtag).ok());
  EXPECT_TRUE(store->SetAlias("letters", "prod", 1, kAnyEtag).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store->DeleteVersion("letters", 1)));
  EXPECT_TRUE(store->DeleteAlias("letters", "prod", "").ok());
  EXPECT_TRUE(store->DeleteMapping("letters").ok());
  EXPECT_EQ(store->Publish(RequestFor("build-4"), "new")->number, 4);
}

// The statements that migrate the first release's schema to the second. Never change this text,
// either.
constexpr char kSchema2[] = R"sql(
ALTER TABLE mappings ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1));
ALTER TABLE versions ADD COLUMN imported INTEGER NOT NULL DEFAULT 0 CHECK (imported IN (0, 1));
ALTER TABLE aliases ADD COLUMN previous_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE aliases ADD COLUMN move_time_us INTEGER NOT NULL DEFAULT 0;
INSERT INTO aliases VALUES ('letters', 'prod', 3, '0123456789abcdef', 1, 1700000000000000);
PRAGMA user_version = 2;
)sql";

TEST(SchemaMigrationTest, AStoreOfTheSecondSchemaKeepsEverythingAndCountsFromZero) {
  TemporaryDirectory directory;
  TemporaryDirectory fresh;
  ManualClock clock;
  WriteOldStore(directory.path());
  ExecuteSql(directory.path(), kSchema2);
  for (int start = 0; start < 2; ++start) {
    const std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock);
    ExpectEverythingThere(*store, directory.path());
    EXPECT_EQ(store->GetAliasedVersion("letters", "prod")->number, 3);
  }
  MustOpen(fresh.path(), &clock).reset();
  EXPECT_EQ(TablesOf(directory.path()), TablesOf(fresh.path()));
  const std::unique_ptr<Store> catalog = MustOpen(directory.path(), &clock);
  const NameChanges changes = catalog->ChangesSince(Revision()).value();
  EXPECT_EQ(changes.revision.id.size(), 24);
  EXPECT_EQ(changes.revision.number, 0);
  ASSERT_EQ(changes.mappings.size(), 1);
  EXPECT_EQ(changes.mappings[0].newest_version(), 3);
  EXPECT_EQ(changes.mappings[0].aliases.size(), 1);
}

TEST(SchemaMigrationTest, AnOldStoreGetsTheTablesOfANewOne) {
  TemporaryDirectory old_directory;
  TemporaryDirectory new_directory;
  ManualClock clock;
  WriteOldStore(old_directory.path());
  const std::string before = TablesOf(old_directory.path());
  MustOpen(old_directory.path(), &clock).reset();
  MustOpen(new_directory.path(), &clock).reset();
  EXPECT_EQ(TablesOf(old_directory.path()), TablesOf(new_directory.path()));
  EXPECT_NE(TablesOf(old_directory.path()), before);
}

// The process crashes before its k-th disk operation, for every k.
TEST(SchemaMigrationTest, ACrashLeavesTheOldTablesOrTheNewOnes) {
  ManualClock clock;
  TemporaryDirectory fresh;
  MustOpen(fresh.path(), &clock).reset();
  const std::string new_tables = TablesOf(fresh.path());
  int index = 0;
  for (;; index += kFaultStep) {
    SCOPED_TRACE(index);
    TemporaryDirectory directory;
    WriteOldStore(directory.path());
    const std::string old_tables = TablesOf(directory.path());
    const pid_t child = fork();
    if (child == 0) {
      FaultPlan plan;
      ScopedFaultyVfs vfs(&plan);
      FaultyFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
      plan.Arm(Fault::kExit, 0, index);
      MustOpen(directory.path(), &clock, &file_system).reset();
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    const std::string tables = TablesOf(directory.path());
    EXPECT_TRUE(tables == old_tables || tables == new_tables) << tables;
    const std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock);
    ExpectEverythingThere(*store, directory.path());
    EXPECT_EQ(TablesOf(directory.path()), new_tables);
    if (WEXITSTATUS(status) == 0) break;
    EXPECT_EQ(WEXITSTATUS(status), FaultPlan::kExitStatus);
  }
  EXPECT_GE(index, 5);
}

TEST(SchemaMigrationTest, ADiskThatFailsLeavesAStoreThatOpensNextTime) {
  ManualClock clock;
  for (const int error_number : {ENOSPC, EIO}) {
    for (int index = 0;; index += kFaultStep) {
      SCOPED_TRACE(absl::StrCat(error_number, " at operation ", index));
      TemporaryDirectory directory;
      WriteOldStore(directory.path());
      FaultPlan plan;
      ScopedFaultyVfs vfs(&plan);
      FaultyFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
      plan.Arm(Fault::kError, error_number, index);
      absl::StatusOr<std::unique_ptr<SqliteStore>> store =
          SqliteStore::Open(OptionsFor(directory.path(), &clock), &file_system);
      const bool reached = plan.reached();
      plan.Disarm();
      if (!store.ok()) store = MustOpen(directory.path(), &clock, &file_system);
      ExpectEverythingThere(**store, directory.path());
      EXPECT_TRUE((*store)->SetAlias("letters", "prod", 3, kNoEtag).ok());
      if (!reached) break;
    }
  }
}

}  // namespace
}  // namespace phimap::testing
