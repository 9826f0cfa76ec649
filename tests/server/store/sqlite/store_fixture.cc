#include "tests/server/store/sqlite/store_fixture.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "server/store/garbage_collector.h"

namespace phimap {

namespace fs = std::filesystem;

namespace {

constexpr sqlite3_int64 kUnixEpochInJulianMs = 210'866'760'000'000;

const ManualClock* g_clock = nullptr;

int ManualTime(sqlite3_vfs*, sqlite3_int64* julian_ms) {
  *julian_ms = kUnixEpochInJulianMs + absl::ToUnixMillis(g_clock->now);
  return SQLITE_OK;
}

// Replaces the clock of SQLite's default file system, and puts it back at the end.
class ScopedTime {
 public:
  using Time = int (*)(sqlite3_vfs*, sqlite3_int64*);

  explicit ScopedTime(Time time)
      : files_(sqlite3_vfs_find(nullptr)),
        before_(std::exchange(files_->xCurrentTimeInt64, time)) {}
  ~ScopedTime() { files_->xCurrentTimeInt64 = before_; }
  Time before() const { return before_; }

 private:
  sqlite3_vfs* const files_;
  const Time before_;
};

std::optional<ScopedTime> g_time;

}  // namespace

ManualClock::ManualClock() {
  PHIMAP_CHECK(g_clock == nullptr);
  g_clock = this;
  g_time.emplace(ManualTime);
}

ManualClock::~ManualClock() {
  g_time.reset();
  g_clock = nullptr;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = absl::StrCat(::testing::TempDir(), "/phimap_store_XXXXXX");
  PHIMAP_CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

SqliteStoreOptions OptionsFor(const std::string& data_dir, const ManualClock* clock) {
  SqliteStoreOptions options{.data_dir = data_dir};
  if (clock != nullptr) options.steady = [clock] { return clock->now; };
  options.busy_timeout = absl::ZeroDuration();
  options.reserve_bytes = 0;
  return options;
}

std::unique_ptr<SqliteStore> MustOpen(const std::string& data_dir, const ManualClock* clock,
                                      FileSystem* file_system) {
  absl::StatusOr<std::unique_ptr<SqliteStore>> store =
      SqliteStore::Open(OptionsFor(data_dir, clock), file_system);
  EXPECT_TRUE(store.ok()) << store.status();
  PHIMAP_CHECK(store.ok());
  return *std::move(store);
}

PublishRequest RequestFor(const std::string& build_id, const std::string& mapping) {
  PublishRequest request;
  request.version.mapping = mapping;
  request.version.input_columns = 16;
  request.version.output_columns = 256;
  request.version.serving_type = "float32";
  request.build_id = build_id;
  request.spec_digest = "spec";
  request.rows_received = 10;
  return request;
}

std::vector<std::string> BlobsIn(const std::string& data_dir) {
  std::vector<std::string> digests;
  for (const auto& entry : fs::recursive_directory_iterator(data_dir + "/blobs")) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && name != "STORE") digests.push_back(name);
  }
  return digests;
}

std::vector<std::string> TemporaryFilesIn(const std::string& data_dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data_dir + "/tmp")) {
    names.push_back(entry.path().filename());
  }
  return names;
}

void CollectGarbage(SqliteStore& store) {
  // The times of files are real, so the collector's must be.
  std::optional<ScopedTime> real;
  if (g_time.has_value()) real.emplace(g_time->before());
  GarbageCollector collector(store.database(), store.blobs(), "the test");
  // The first pass records what a crash has left behind, and the second one removes it.
  for (int pass = 0; pass < 2; ++pass) {
    const GarbageReport report = collector.Run(absl::ZeroDuration()).value();
    // What the first pass listed is older than its time for the second. SQLite's clock counts
    // milliseconds, and on a disk in memory a pass takes less.
    const absl::Time listed = absl::Now();
    while (absl::Now() < listed + absl::Milliseconds(2)) continue;
  }
}

int64_t ExpectConsistent(SqliteStore* store, const std::string& data_dir) {
  CollectGarbage(*store);
  EXPECT_EQ(TemporaryFilesIn(data_dir), std::vector<std::string>{});
  std::set<std::string> referenced;
  int64_t count = 0;
  const absl::StatusOr<std::vector<VersionRecord>> versions =
      store->ListVersions("letters", std::nullopt, 1000);
  if (versions.ok()) {
    count = static_cast<int64_t>(versions->size());
    for (size_t i = 0; i < versions->size(); ++i) {
      const VersionRecord& version = (*versions)[i];
      EXPECT_EQ(version.number, count - static_cast<int64_t>(i));
      const std::string artifact = store->ReadArtifact(version.digest).value();
      referenced.insert(version.digest);
    }
  } else {
    EXPECT_TRUE(absl::IsNotFound(versions.status())) << versions.status();
  }
  for (const std::string& digest : BlobsIn(data_dir)) {
    EXPECT_EQ(referenced.count(digest), 1) << "leaked blob " << digest;
  }
  return count;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

void WriteWhole(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
}

void ExecuteSql(const std::string& data_dir, const std::string& sql) {
  sqlite3* connection = nullptr;
  PHIMAP_CHECK(sqlite3_open((data_dir + "/phimap.sqlite").c_str(), &connection) == SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
      << message;
  sqlite3_free(message);
  sqlite3_close(connection);
}

}  // namespace phimap
