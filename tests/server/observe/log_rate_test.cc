#include "gtest/gtest.h"
#include "server/observe/log.h"

namespace phimap::testing {
namespace {

using std::chrono::milliseconds;

class LogRateTest : public ::testing::Test {
 protected:
  // Offers `lines` log lines at time now_, and returns how many are admitted.
  int Admitted(int lines, LogLevel level = LogLevel::kInfo, const char* event = "rpc",
               const char* caller = "") {
    int admitted = 0;
    for (int i = 0; i < lines; ++i) admitted += rate_.Admit(level, event, caller, now_) ? 1 : 0;
    return admitted;
  }

  LogRate rate_{{.lines_per_second = 10, .burst = 20}};
  LogRate::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(LogRateTest, ABurstPassesAndThenItsRate) {
  EXPECT_EQ(Admitted(100), 20);
  now_ += milliseconds(99);
  EXPECT_EQ(Admitted(100), 0);
  now_ += milliseconds(2);
  EXPECT_EQ(Admitted(100), 1);
  now_ += milliseconds(1000);
  EXPECT_EQ(Admitted(100), 10);
}

TEST_F(LogRateTest, SilenceSavesNoMoreThanABurst) {
  EXPECT_EQ(Admitted(100), 20);
  now_ += std::chrono::hours(24);
  EXPECT_EQ(Admitted(100), 20);
}

TEST_F(LogRateTest, AFloodOfOneEventTakesNothingFromOthersNorFromErrors) {
  EXPECT_EQ(Admitted(100), 20);
  EXPECT_EQ(Admitted(100, LogLevel::kInfo, "build_done"), 20);
  EXPECT_EQ(Admitted(100, LogLevel::kWarning), 20);
  EXPECT_EQ(Admitted(100, LogLevel::kError), 20);
}

TEST_F(LogRateTest, AFloodOfOneCallerTakesNothingFromOthers) {
  EXPECT_EQ(Admitted(100, LogLevel::kInfo, "rpc", "shop"), 20);
  EXPECT_EQ(Admitted(100, LogLevel::kInfo, "rpc", "mill"), 20);
  EXPECT_EQ(Admitted(100), 20);
  EXPECT_EQ(Admitted(100, LogLevel::kInfo, "rpc", "shop"), 0);
}

TEST_F(LogRateTest, DebugIsNotLimited) { EXPECT_EQ(Admitted(1000, LogLevel::kDebug), 1000); }

TEST_F(LogRateTest, AThreadThatLooksAtItsClockTooEarlyGainsNothing) {
  EXPECT_EQ(Admitted(100), 20);
  now_ -= std::chrono::hours(1);
  EXPECT_EQ(Admitted(1), 0);
  now_ += std::chrono::hours(1);
  EXPECT_EQ(Admitted(1), 0);
}

}  // namespace
}  // namespace phimap::testing
