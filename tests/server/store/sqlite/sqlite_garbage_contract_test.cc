#include <utime.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/check.h"
#include "server/store/files/file_blobs.h"
#include "tests/contract/garbage_contract.h"
#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

// A file system on which files can look as if they were renamed or removed long ago. A program can
// set a file's last write time, but not its last change time. Therefore this file system reports
// the write time as the change time.
class OldFileSystem final : public FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  absl::StatusOr<FileFacts> Facts(const std::string& path) override {
    absl::StatusOr<FileFacts> facts = FaultyFileSystem::Facts(path);
    if (facts.ok()) facts->change_time = facts->write_time;
    return facts;
  }
};

class SqliteHarness : public GarbageHarness {
 public:
  SqliteHarness() : store_(MustOpen(directory_.path(), nullptr, &file_system_)) {}
  std::shared_ptr<SqlDatabase> database() override { return store_->database(); }
  std::shared_ptr<Blobs> blobs() override { return store_->blobs(); }
  void AgeBlob(const std::string& digest, absl::Duration age) override {
    const std::string path = FileBlobs(directory_.path(), PosixFileSystem()).BlobPath(digest);
    if (std::filesystem::exists(path)) Age(path, age);
  }
  void LeavePart(absl::Duration age) override {
    WriteWhole(part_, "half");
    Age(part_, age);
  }
  bool HasPart() override { return std::filesystem::exists(part_); }

 private:
  static void Age(const std::string& path, absl::Duration age) {
    utimbuf times{};
    times.actime = times.modtime = absl::ToTimeT(absl::Now() - age);
    PHIMAP_CHECK(utime(path.c_str(), &times) == 0);
  }

  TemporaryDirectory directory_;
  const std::string part_ = directory_.path() + "/tmp/7.part";
  FaultPlan plan_;
  OldFileSystem file_system_{PosixFileSystem(), directory_.path(), &plan_};
  std::unique_ptr<SqliteStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, GarbageContractTest,
                         ::testing::Values(GarbageHarnessFactory{
                             "Sqlite", [] { return std::make_unique<SqliteHarness>(); }}),
                         GarbageHarnessName);

}  // namespace
}  // namespace phimap::testing
