// A data directory that is removed at the end of the test, and helpers that examine its files.
#ifndef PHIMAP_TESTS_SERVER_STORE_SQLITE_STORE_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_STORE_SQLITE_STORE_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "server/store/files/file_system.h"
#include "server/store/sqlite/sqlite_store.h"

namespace phimap {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A clock that stands at 2024-01-01 until the test moves it. While one exists, it is SQLite's clock
// in this process. At most one may exist.
class ManualClock {
 public:
  ManualClock();
  ~ManualClock();
  ManualClock(const ManualClock&) = delete;
  ManualClock& operator=(const ManualClock&) = delete;

  absl::Time now = absl::FromUnixSeconds(1'704'067'200);
};

// If `clock` is not null, the server's monotonic clock is `clock` too, so that it goes with
// SQLite's.
SqliteStoreOptions OptionsFor(const std::string& data_dir, const ManualClock* clock);

// Opens a store; a failure to open it fails the test.
std::unique_ptr<SqliteStore> MustOpen(const std::string& data_dir, const ManualClock* clock,
                                      FileSystem* file_system = PosixFileSystem());

PublishRequest RequestFor(const std::string& build_id, const std::string& mapping = "letters");

// BlobsIn returns the digests of all blobs. TemporaryFilesIn returns the names of the files in
// tmp/.
std::vector<std::string> BlobsIn(const std::string& data_dir);
std::vector<std::string> TemporaryFilesIn(const std::string& data_dir);

// Removes the blobs that no version refers to, without waiting for their grace period.
void CollectGarbage(SqliteStore& store);

// Collects garbage. Expects that version numbers are 1, 2, … without gaps, that every artifact can
// be read, and that no temporary file and no blob without a version is left. Returns the number of
// versions.
int64_t ExpectConsistent(SqliteStore* store, const std::string& data_dir);

std::string ReadWhole(const std::string& path);
void WriteWhole(const std::string& path, const std::string& content);

// Runs SQL on the database over a separate connection.
void ExecuteSql(const std::string& data_dir, const std::string& sql);

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_STORE_SQLITE_STORE_FIXTURE_H_
