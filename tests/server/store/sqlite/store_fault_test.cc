// Makes every disk operation fail in turn, in SQLite as well as in the file layer.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/faulty_vfs.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/fault_step.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

bool IsAllowed(StatusCode code, int error_number) {
  // If the outcome of the commit is in doubt, the code is UNAVAILABLE whatever the cause is.
  if (code == StatusCode::kUnavailable) return true;
  if (error_number == ENOSPC) return code == StatusCode::kResourceExhausted;
  return error_number == EROFS && code == StatusCode::kFailedPrecondition;
}

// Publishes while operation `index` fails, and then checks the store. Returns false if publishing
// took fewer operations.
bool TryFault(Fault fault, int error_number, int index) {
  TemporaryDirectory directory;
  ManualClock clock;
  FaultPlan plan;
  ScopedFaultyVfs vfs(&plan);
  FaultyFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
  std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock, &file_system);
  EXPECT_TRUE(store->Publish(RequestFor("build-1"), "abc").ok());

  plan.Arm(fault, error_number, index);
  const absl::StatusOr<VersionRecord> version = store->Publish(RequestFor("build-2"), "new");
  const bool reached = plan.reached();
  const std::vector<std::string> operations = plan.operations();
  plan.Disarm();
  SCOPED_TRACE(reached ? operations[index] : "no fault");

  if (!version.ok()) {
    EXPECT_TRUE(IsAllowed(version.status().code(), error_number)) << version.status();
  }
  EXPECT_EQ(ExpectConsistent(store.get(), directory.path()), version.ok() ? 2 : 1);
  EXPECT_EQ(store->GetBuild("letters", "build-2").ok(), version.ok());
  // Publishing the build again either succeeds now, or finds that the first attempt did.
  const absl::Status again = store->Publish(RequestFor("build-2"), "new").status();
  EXPECT_EQ(again.code(), version.ok() ? StatusCode::kAlreadyExists : StatusCode::kOk);
  EXPECT_EQ(store->Publish(RequestFor("build-3"), "third")->number, 3);
  EXPECT_EQ(ExpectConsistent(store.get(), directory.path()), 3);
  store.reset();
  store = MustOpen(directory.path(), &clock, &file_system);
  EXPECT_EQ(ExpectConsistent(store.get(), directory.path()), 3);
  return reached;
}

class StoreFaultTest : public ::testing::TestWithParam<int> {};

TEST_P(StoreFaultTest, AFailedOperationLeavesNothingAndTheNextPublishWorks) {
  int index = 0;
  while (TryFault(Fault::kError, GetParam(), index)) ++index;
  // Publishing takes eight operations for the blob (mkdir, sync, create, write, sync, close,
  // rename, sync), and at least two for the commit (write, sync).
  EXPECT_GE(index, 10);
}

TEST_P(StoreFaultTest, AnErrorAfterTheEffectLeavesNothingOrTheWhole) {
  int index = 0;
  while (TryFault(Fault::kErrorAfter, GetParam(), index)) ++index;
  EXPECT_GE(index, 10);
}

INSTANTIATE_TEST_SUITE_P(Errors, StoreFaultTest, ::testing::Values(ENOSPC, EIO, EROFS),
                         [](const ::testing::TestParamInfo<int>& info) -> std::string {
                           return info.param == ENOSPC ? "DiskFull"
                                  : info.param == EIO  ? "InputOutputError"
                                                       : "ReadOnly";
                         });

// Publishes in a child process whose disk fails permanently from operation `index` on. The child
// ends without closing the database, so that SQLite's recovery must decide about a commit in doubt.
bool TryLastingFault(Fault fault, const std::string& prefix, int index, int* in_doubt,
                     int* recovered) {
  TemporaryDirectory directory;
  ManualClock clock;
  EXPECT_TRUE(MustOpen(directory.path(), &clock)->Publish(RequestFor("build-1"), "abc").ok());
  constexpr int kNotReached = 2;
  constexpr int kInDoubt = 3;
  const pid_t child = fork();
  if (child == 0) {
    FaultPlan plan;
    ScopedFaultyVfs vfs(&plan);
    FaultyFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
    std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock, &file_system);
    plan.Arm(fault, EIO, index, /*sticky=*/true, prefix);
    const absl::Status status = store->Publish(RequestFor("build-2"), "new").status();
    if (!plan.reached()) _exit(kNotReached);
    // The version must not be visible now, even if recovery finds it later.
    const bool hidden = !status.ok() && store->GetVersion("letters", std::nullopt)->number == 1 &&
                        store->ReadArtifact(store->GetVersion("letters", 1)->digest).ok();
    const bool doubtful = !status.ok() && ReasonOf(status) == "COMMIT_IN_DOUBT";
    // Publishing must stay impossible, but reading must work.
    const bool refused = !prefix.empty() || !store->Publish(RequestFor("build-3"), "third").ok();
    _exit(!hidden || !refused ? 1 : doubtful ? kInDoubt : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_NE(WEXITSTATUS(status), 1);
  std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock);
  const int64_t versions = ExpectConsistent(store.get(), directory.path());
  // Recovery may add a version only if its commit was in doubt, and the version must then be
  // complete.
  if (WEXITSTATUS(status) == kInDoubt) {
    ++*in_doubt;
    *recovered += versions == 2;
  } else if (WEXITSTATUS(status) == 0) {
    EXPECT_EQ(versions, 1);
  }
  return WEXITSTATUS(status) != kNotReached;
}

TEST(StoreLastingFaultTest, ADiskThatFailsForGoodLosesNoArtifactOfAVisibleVersion) {
  int in_doubt = 0;
  int recovered = 0;
  // With the prefix "sqlite", only the database's operations fail permanently. Blobs could still be
  // removed.
  for (const std::string prefix : {"", "sqlite"}) {
    for (const Fault fault : {Fault::kError, Fault::kErrorAfter}) {
      int index = 0;
      while (TryLastingFault(fault, prefix, index, &in_doubt, &recovered)) ++index;
      EXPECT_GE(index, 10);
    }
  }
  // The hard case must have occurred: the commit reaches the log, but its fsync reports an error.
  // The publisher gets COMMIT_IN_DOUBT, and recovery finds the version later. Its blob must have
  // been kept until then.
  EXPECT_GE(in_doubt, 1);
  EXPECT_GE(recovered, 1);
}

TEST(StoreOpenFaultTest, AFailedStartUpLeavesADirectoryThatOpensNextTime) {
  for (const int error_number : {ENOSPC, EIO, EROFS}) {
    for (int index = 0;; index += kFaultStep) {
      SCOPED_TRACE(absl::StrCat(error_number, " at operation ", index));
      TemporaryDirectory directory;
      ManualClock clock;
      FaultPlan plan;
      ScopedFaultyVfs vfs(&plan);
      FaultyFileSystem file_system(PosixFileSystem(), directory.path(), &plan);
      plan.Arm(Fault::kError, error_number, index);
      absl::StatusOr<std::unique_ptr<SqliteStore>> store =
          SqliteStore::Open(OptionsFor(directory.path(), &clock), &file_system);
      const bool reached = plan.reached();
      plan.Disarm();
      if (!store.ok()) {
        EXPECT_TRUE(IsAllowed(store.status().code(), error_number)) << store.status();
        store = MustOpen(directory.path(), &clock, &file_system);
      }
      EXPECT_TRUE((*store)->Publish(RequestFor("build-1"), "abc").ok());
      EXPECT_EQ(ExpectConsistent(store->get(), directory.path()), 1);
      if (!reached) break;
    }
  }
}

}  // namespace
}  // namespace phimap::testing
