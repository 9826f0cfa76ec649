// For every k, a process crashes before its k-th disk operation, and then another process opens the
// directory.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/faulty_vfs.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/fault_step.h"

namespace phimap::testing {
namespace {

// Runs a child process that opens the store, publishes twice, and crashes before operation `index`.
// Returns its exit status. Sets `*answered` to the number of calls of Publish that returned.
int RunChild(const std::string& data_dir, const ManualClock* clock, int index, int64_t* answered) {
  int answers[2];
  EXPECT_EQ(pipe(answers), 0);
  const pid_t child = fork();
  if (child == 0) {
    FaultPlan plan;
    ScopedFaultyVfs vfs(&plan);
    FaultyFileSystem file_system(PosixFileSystem(), data_dir, &plan);
    plan.Arm(Fault::kExit, 0, index);
    std::unique_ptr<SqliteStore> store = MustOpen(data_dir, clock, &file_system);
    for (const char* build : {"build-1", "build-2"}) {
      if (!store->Publish(RequestFor(build), build).ok()) _exit(1);
      if (write(answers[1], "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(answers[1]);
  char byte;
  *answered = 0;
  while (read(answers[0], &byte, 1) == 1) ++*answered;
  close(answers[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(StoreCrashTest, AnAnsweredPublishSurvivesAndAnInterruptedOneLeavesNothing) {
  int index = 0;
  for (;; index += kFaultStep) {
    SCOPED_TRACE(index);
    TemporaryDirectory directory;
    ManualClock clock;
    int64_t answered = 0;
    const int exit_status = RunChild(directory.path(), &clock, index, &answered);
    ASSERT_TRUE(exit_status == 0 || exit_status == FaultPlan::kExitStatus) << exit_status;

    std::unique_ptr<SqliteStore> store = MustOpen(directory.path(), &clock);
    const int64_t versions = ExpectConsistent(store.get(), directory.path());
    // If the child crashed after a commit but before Publish returned, the version is complete
    // although its publisher got no answer.
    EXPECT_GE(versions, answered);
    EXPECT_LE(versions, answered + 1);
    EXPECT_EQ(store->GetBuild("letters", "build-1").ok(), versions >= 1);
    EXPECT_EQ(store->GetBuild("letters", "build-2").ok(), versions >= 2);
    EXPECT_EQ(store->Publish(RequestFor("build-3"), "third")->number, versions + 1);
    EXPECT_EQ(ExpectConsistent(store.get(), directory.path()), versions + 1);
    if (exit_status == 0) break;
  }
  // There must be at least 30 operations before which the child can crash; otherwise the test has
  // missed most of them.
  EXPECT_GE(index, 30);
}

}  // namespace
}  // namespace phimap::testing
