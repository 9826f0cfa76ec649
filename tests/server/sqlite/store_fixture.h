// A data directory that goes away with the test, and what tests want to know about its files.
#ifndef PHIMAP_TESTS_SERVER_SQLITE_STORE_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_SQLITE_STORE_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "server/files/file_system.h"
#include "server/sqlite/sqlite_store.h"

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

// 2024-01-01, until the test moves it.
class ManualClock {
 public:
  absl::Time now = absl::FromUnixSeconds(1'704'067'200);
};

SqliteStoreOptions OptionsFor(const std::string& data_dir, const ManualClock* clock);

// Opens, and fails the test if that fails.
std::unique_ptr<SqliteStore> MustOpen(const std::string& data_dir, const ManualClock* clock,
                                      FileSystem* file_system = PosixFileSystem());

PublishRequest RequestFor(const std::string& build_id, const std::string& mapping = "letters");

// Digests of the blobs that are there; names of the files in tmp/.
std::vector<std::string> BlobsIn(const std::string& data_dir);
std::vector<std::string> TemporaryFilesIn(const std::string& data_dir);

// Removes at once what no version names.
void CollectGarbage(SqliteStore& store);

// Collects garbage, and fails the test unless: numbers are 1, 2, … without gaps, every artifact
// reads back, no temporary file and no blob without a version is there. Returns how many versions
// there are.
int64_t ExpectConsistent(SqliteStore* store, const std::string& data_dir);

std::string ReadWhole(const std::string& path);
void WriteWhole(const std::string& path, const std::string& content);

// Runs SQL on the database over a connection of its own.
void ExecuteSql(const std::string& data_dir, const std::string& sql);

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_SQLITE_STORE_FIXTURE_H_
