// A process that ends without its destructors, here by _exit in a child, is a crash.
#include "server/observe/crash_record.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap::testing {
namespace {

class CrashRecordTest : public ::testing::Test {
 protected:
  void Crash() {
    const pid_t child = fork();
    if (child == 0) {
      const CrashRecord record(path(), logger_);
      _exit(0);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }
  // Runs and ends in order.
  int64_t CrashesBefore() { return CrashRecord(path(), logger_).crashes(); }
  std::string path() const { return directory_.path() + "/crashes"; }

  TemporaryFolder directory_;
  const Logger logger_{LogLevel::kOff};
};

TEST_F(CrashRecordTest, RunsThatEndInOrderCountNothing) {
  EXPECT_EQ(CrashesBefore(), 0);
  EXPECT_EQ(CrashesBefore(), 0);
}

TEST_F(CrashRecordTest, EachRunThatDidNotEndInOrderCountsOnceAndIsRemembered) {
  Crash();
  EXPECT_EQ(CrashesBefore(), 1);
  EXPECT_EQ(CrashesBefore(), 1);
  Crash();
  Crash();
  Crash();
  EXPECT_EQ(CrashesBefore(), 4);
}

TEST_F(CrashRecordTest, ARecordThatIsDamagedOrCannotBeWrittenCountsNothing) {
  std::ofstream(path()) << "running and running and running";
  EXPECT_EQ(CrashesBefore(), 1);  // it says that the process ran, and not how often one crashed
  std::ofstream(path()) << "short";
  EXPECT_EQ(CrashesBefore(), 0);
  EXPECT_EQ(CrashRecord(directory_.path() + "/no folder/crashes", logger_).crashes(), 0);
}

}  // namespace
}  // namespace phimap::testing
