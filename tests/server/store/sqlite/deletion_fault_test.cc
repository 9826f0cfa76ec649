// Tests deletions and alias moves on a disk that fails, and in a process that crashes in the middle
// of the change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/store/garbage_collector.h"
#include "server/store/sha256.h"
#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/faulty_vfs.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/fault_step.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// A change to a store that contains letters@1, letters@2 and spam@1. letters@1 and spam@1 have the
// same artifact, "shared"; letters@2 has the artifact "own". The alias spam@prod points to version
// 1.
struct Change {
  const char* name;
  std::function<absl::Status(Store&)> make;
  // Whether the change was made.
  std::function<bool(Store&)> happened;
  std::vector<std::string> blobs_after;
};

void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

std::vector<Change> Changes() {
  const std::string shared = Sha256Hex("shared");
  const std::string own = Sha256Hex("own");
  return {{"DeleteVersion",
           [](Store& store) { return store.DeleteVersion("letters", 2); },
           [](Store& store) { return !store.GetVersion("letters", 2).ok(); },
           {shared}},
          {"DeleteSharedVersion",
           [](Store& store) { return store.DeleteVersion("letters", 1); },
           [](Store& store) { return !store.GetVersion("letters", 1).ok(); },
           {shared, own}},
          {"DeleteMapping",
           [](Store& store) { return store.DeleteMapping("letters"); },
           [](Store& store) { return !store.GetMapping("letters").ok(); },
           {shared}},
          {"MoveAlias",
           [](Store& store) { return store.SetAlias("letters", "prod", 2, kNoEtag).status(); },
           [](Store& store) { return store.GetAliasedVersion("letters", "prod").ok(); },
           {shared, own}},
          {"DeleteAlias",
           [](Store& store) { return store.DeleteAlias("spam", "prod", ""); },
           [](Store& store) { return !store.GetAliasedVersion("spam", "prod").ok(); },
           {shared, own}}};
}

void Fill(Store& store) {
  EXPECT_TRUE(store.Publish(RequestFor("build-1"), "shared").ok());
  EXPECT_TRUE(store.Publish(RequestFor("build-2"), "own").ok());
  EXPECT_TRUE(store.Publish(RequestFor("build-1", "spam"), "shared").ok());
  EXPECT_TRUE(store.SetAlias("spam", "prod", 1, "").ok());
}

// Collects garbage. Expects that every visible version has its artifact, and that no other artifact
// is left.
void ExpectWhole(SqliteStore& store, const std::string& data_dir) {
  CollectGarbage(store);
  EXPECT_THAT(TemporaryFilesIn(data_dir), IsEmpty());
  std::set<std::string> referenced;
  for (const char* mapping : {"letters", "spam"}) {
    const auto versions = store.ListVersions(mapping, std::nullopt, 100);
    if (!versions.ok()) continue;
    for (const VersionRecord& version : *versions) {
      const auto artifact = store.ReadArtifact(version.digest).value();
      referenced.insert(version.digest);
    }
  }
  const std::vector<std::string> blobs = BlobsIn(data_dir);
  EXPECT_EQ(std::set<std::string>(blobs.begin(), blobs.end()), referenced);
}

class ChangeTest : public ::testing::TestWithParam<Change> {};

TEST_P(ChangeTest, RemovesNoArtifactAndOnlyWhatNothingRefersToIsGarbage) {
  TemporaryDirectory directory;
  ManualClock clock;
  FaultPlan plan;
  ScopedFaultyVfs vfs(&plan);
  FaultyFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
  std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock, &file_system);
  Fill(*store);
  plan.Disarm();
  ASSERT_TRUE(GetParam().make(*store).ok());
  EXPECT_TRUE(GetParam().happened(*store));
  for (const std::string& operation : plan.operations()) {
    EXPECT_NE(operation.rfind("remove ", 0), 0) << operation;
  }
  EXPECT_EQ(BlobsIn(directory.path()).size(), 2);
  CollectGarbage(*store);
  EXPECT_THAT(BlobsIn(directory.path()),
              ::testing::UnorderedElementsAreArray(GetParam().blobs_after));
}

TEST_P(ChangeTest, AFailedOperationChangesAllOrNothingAndTheNextAttemptWorks) {
  for (const Fault fault : {Fault::kError, Fault::kErrorAfter}) {
    for (const int error_number : {ENOSPC, EIO}) {
      for (int index = 0;; index += kFaultStep) {
        SCOPED_TRACE(absl::StrCat(error_number, " at operation ", index));
        TemporaryDirectory directory;
        ManualClock clock;
        FaultPlan plan;
        ScopedFaultyVfs vfs(&plan);
        FaultyFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
        std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock, &file_system);
        Fill(*store);
        plan.Arm(fault, error_number, index);
        const absl::Status changed = GetParam().make(*store);
        const bool reached = plan.reached();
        plan.Disarm();
        EXPECT_EQ(GetParam().happened(*store), changed.ok()) << changed;
        EXPECT_TRUE(changed.ok() || GetParam().make(*store).ok());
        EXPECT_TRUE(GetParam().happened(*store));
        EXPECT_TRUE(store->Publish(RequestFor("build-9", "spam"), "later").ok());
        ExpectWhole(*store, directory.path());
        store.reset();
        store = MustOpen(directory.path(), &clock, &file_system);
        EXPECT_TRUE(GetParam().happened(*store));
        if (!reached) break;
      }
    }
  }
}

TEST_P(ChangeTest, ACrashLeavesAllOrNothingAndWhatIsLeftOverIsGarbage) {
  int index = 0;
  for (;; index += kFaultStep) {
    SCOPED_TRACE(index);
    TemporaryDirectory directory;
    ManualClock clock;
    Fill(*MustOpen(directory.path(), &clock));
    const pid_t child = fork();
    if (child == 0) {
      FaultPlan plan;
      ScopedFaultyVfs vfs(&plan);
      FaultyFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
      std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock, &file_system);
      plan.Arm(Fault::kExit, 0, index);
      const bool changed = GetParam().make(*store).ok();
      _exit(changed ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock);
    ExpectWhole(*store, directory.path());
    if (WEXITSTATUS(status) == 0) {
      EXPECT_TRUE(GetParam().happened(*store));
      break;
    }
    ASSERT_EQ(WEXITSTATUS(status), FaultPlan::kExitStatus);
    EXPECT_TRUE(GetParam().happened(*store) || GetParam().make(*store).ok());
    ExpectWhole(*store, directory.path());
  }
  EXPECT_GE(index, 2);
}

INSTANTIATE_TEST_SUITE_P(All, ChangeTest, ::testing::ValuesIn(Changes()),
                         [](const ::testing::TestParamInfo<Change>& info) -> std::string {
                           return info.param.name;
                         });

// Runs `before_read` after the rows of the database were read, but before the artifact's file is
// read.
class RacingFileSystem : public FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes) override {
    if (before_read) std::exchange(before_read, nullptr)();
    return FaultyFileSystem::ReadFile(path, limit_bytes);
  }
  absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset,
                                        int64_t bytes) override {
    if (before_read) std::exchange(before_read, nullptr)();
    return FaultyFileSystem::ReadRange(path, offset, bytes);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> NewReadableFile(const std::string& path) override {
    if (before_read) std::exchange(before_read, nullptr)();
    return FaultyFileSystem::NewReadableFile(path);
  }

  std::function<void()> before_read;
};

TEST(DeletionTest, AnArtifactThatIsDeletedWhileItIsLookedUpIsNotFoundAndNotDamaged) {
  TemporaryDirectory directory;
  ManualClock clock;
  FaultPlan plan;
  RacingFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
  std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock, &file_system);
  const auto remove = [&](int64_t number) {
    EXPECT_TRUE(store->DeleteVersion("letters", number).ok());
    CollectGarbage(*store);
  };
  const std::string first = store->Publish(RequestFor("build-1"), "first")->digest;
  const std::string second = store->Publish(RequestFor("build-2"), "second")->digest;
  file_system.before_read = [&] { remove(1); };
  const absl::Status read = store->ReadArtifact(first).status();
  EXPECT_TRUE(absl::IsNotFound(read)) << read;
  file_system.before_read = [&] { remove(2); };
  const absl::Status opened = store->OpenArtifact(second).status();
  EXPECT_TRUE(absl::IsNotFound(opened)) << opened;
  const std::string third = store->Publish(RequestFor("build-3"), "third")->digest;
  file_system.before_read = [&] { remove(3); };
  const absl::Status part = store->ReadArtifactRange(third, 1, 2).status();
  EXPECT_TRUE(absl::IsNotFound(part)) << part;
}

TEST(DeletionTest, AnArtifactThatWasLookedUpBeforeItsDeletionIsReadWithinTheGraceTime) {
  TemporaryDirectory directory;
  ManualClock clock;
  FaultPlan plan;
  RacingFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
  std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock, &file_system);
  const std::string digest = store->Publish(RequestFor("build-1"), "first")->digest;
  file_system.before_read = [&] {
    EXPECT_TRUE(store->DeleteVersion("letters", 1).ok());
    GarbageCollector collector(store->database(), store->blobs(), "the test");
    EXPECT_TRUE(collector.Run(GarbageCollector::kDefaultGrace).ok());
  };
  EXPECT_EQ(store->ReadArtifact(digest).value_or("?"), "first");
}

}  // namespace
}  // namespace phimap::testing
