// Makes each disk operation of the file layer and of SQLite fail in turn, while an artifact is
// imported, garbage is collected, and a backup is made and restored.
#include <cerrno>
#include <filesystem>
#include <functional>

#include "server/store/admin/store_backup.h"
#include "server/store/garbage_collector.h"
#include "tests/server/store/admin/filled_store.h"
#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/faulty_vfs.h"
#include "tests/support/fault_step.h"
#include "tests/support/matchers.h"

namespace phimap::admin_test {
namespace {

// A store whose disk is faulty, and a backup of it.
class FaultyPlace {
 public:
  FaultyPlace() {
    std::filesystem::create_directory(data());
    SqliteStoreOptions options{.data_dir = data(), .reserve_bytes = 0};
    auto opened = SqliteStore::Open(options, &file_system_).value();
    store_ = std::move(opened);
    FillStore(*store_);
    const AdminStore admin{data(), store_->database(), store_->blobs()};
    EXPECT_TRUE(BackUp(admin, backup(), "the test", PosixFileSystem(), kNeverCancel).ok());
  }
  std::string data() const { return directory_.path() + "/data"; }
  std::string backup() const { return directory_.path() + "/backup"; }
  std::string target() const { return absl::StrCat(directory_.path(), "/target-", target_); }
  // Makes target() return a new folder.
  void Next() { ++target_; }
  SqliteStore& store() { return *store_; }
  AdminStore admin() { return {data(), store_->database(), store_->blobs()}; }
  FileSystem* file_system() { return &file_system_; }
  FaultPlan& plan() { return plan_; }

 private:
  TemporaryDirectory directory_;
  FaultPlan plan_;
  ScopedFaultyVfs vfs_{&plan_};
  FaultyFileSystem file_system_{PosixFileSystem(), directory_.path(), &plan_};
  std::unique_ptr<SqliteStore> store_;
  int target_ = 0;
};

// Expects that the store in `data_dir` shows exactly `shown`. Unless `whole` is true, the store may
// also be empty or impossible to open, but it must never hold only part of the data.
void ExpectWholeOrNone(const std::string& data_dir, const std::string& shown, bool whole) {
  SqliteStoreOptions options{.data_dir = data_dir, .reserve_bytes = 0};
  auto opened = SqliteStore::Open(options, PosixFileSystem());
  if (!opened.ok()) {
    EXPECT_FALSE(whole) << opened.status();
    return;
  }
  const bool empty = (*opened)->ListMappings("", 10)->empty();
  EXPECT_FALSE(whole && empty);
  if (!empty) {
    EXPECT_EQ(Shown(**opened), shown);
  }
}

struct DiskOperation {
  const char* name;
  // Whether the operation changes the store, so that the next run needs a fresh one.
  bool changes_store;
  std::function<absl::Status(FaultyPlace&)> make;
  std::function<void(FaultyPlace&, bool made)> check;
};

absl::Status Collect(FaultyPlace& place) {
  const AdminStore admin = place.admin();
  return GarbageCollector(admin.database, admin.blobs, "test").Run(absl::ZeroDuration()).status();
}

std::vector<DiskOperation> DiskOperations() {
  return {
      {"Import", true,
       [](FaultyPlace& place) {
         VersionRecord version = RequestFor("").version;
         version.mapping = "new";
         return place.store().Import(version, "imported").status();
       },
       [](FaultyPlace& place, bool made) {
         const auto version = place.store().GetVersion("new", 1);
         EXPECT_EQ(version.ok(), made);
         if (made) {
           EXPECT_EQ(*place.store().ReadArtifactOf(*version), "imported");
         }
       }},
      {"CollectGarbage", true, &Collect,
       [](FaultyPlace& place, bool) {
         EXPECT_THAT(Shown(place.store()), Not(HasSubstr("DATA_LOSS")));
         EXPECT_TRUE(Collect(place).ok());
         EXPECT_EQ(BlobsIn(place.data()).size(), 3);
       }},
      {"BackUp", false,
       [](FaultyPlace& place) {
         return BackUp(place.admin(), place.target(), "the test", place.file_system(), kNeverCancel)
             .status();
       },
       [](FaultyPlace& place, bool made) {
         const Place other(Kind::kSqlite);
         const auto restored =
             Restore(place.target(), other.address(), PosixFileSystem(), kNeverCancel);
         // A backup that reported an error may still be complete, if only its last step failed.
         EXPECT_TRUE(restored.ok() || !made) << restored.status();
         ExpectWholeOrNone(other.address(), Shown(place.store()), restored.ok());
       }},
      {"Restore", false,
       [](FaultyPlace& place) {
         return Restore(place.backup(), place.target(), place.file_system(), kNeverCancel).status();
       },
       [](FaultyPlace& place, bool made) {
         if (!made && !std::filesystem::exists(place.target())) return;
         ExpectWholeOrNone(place.target(), Shown(place.store()), made);
       }},
  };
}

void PrintTo(const DiskOperation& operation, std::ostream* out) { *out << operation.name; }

class DiskFaultTest : public ::testing::TestWithParam<DiskOperation> {};

TEST_P(DiskFaultTest, AFailureOfAnyOperationLeavesAllOrNothing) {
  for (const auto& [fault, error_number] :
       {std::pair(Fault::kError, ENOSPC), std::pair(Fault::kErrorAfter, EIO)}) {
    int index = 0;
    std::unique_ptr<FaultyPlace> used;
    for (;; index += testing::kFaultStep) {
      if (GetParam().changes_store) used.reset();
      if (used == nullptr) used = std::make_unique<FaultyPlace>();
      FaultyPlace& place = *used;
      place.Next();
      place.plan().Arm(fault, error_number, index);
      const absl::Status made = GetParam().make(place);
      const bool reached = place.plan().reached();
      const std::vector<std::string> operations = place.plan().operations();
      place.plan().Disarm();
      SCOPED_TRACE(absl::StrCat(GetParam().name, ": ", error_number, " at operation ", index, " ",
                                reached ? operations[index] : "", ": ", made.ToString()));
      GetParam().check(place, made.ok());
      if (!reached) {
        EXPECT_TRUE(made.ok()) << made;
        break;
      }
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GE(index, 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, DiskFaultTest, ::testing::ValuesIn(DiskOperations()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace phimap::admin_test
