// Tests the log messages of gRPC. The test replaces stderr with a pipe, and reads them from the
// pipe.
#include "server/kernel_client/grpc_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"
#include "server/observe/log.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Replaces stderr with a pipe until Take is called or the object is destroyed.
class PipeAsStderr {
 public:
  PipeAsStderr() : before_(dup(STDERR_FILENO)) {
    std::array<int, 2> ends{};
    PHIMAP_CHECK(before_ >= 0 && pipe(ends.data()) == 0);
    read_ = ends[0];
    PHIMAP_CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[1]);
  }
  ~PipeAsStderr() {
    PutBack();
    close(read_);
  }
  // Fills the pipe, so that the next writer blocks.
  void Fill() {
    const std::string bytes(4096, '.');
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    while (write(STDERR_FILENO, bytes.data(), bytes.size()) > 0) {
    }
    fcntl(STDERR_FILENO, F_SETFL, 0);
  }
  // Restores stderr, and returns everything that was written to the pipe.
  std::string Take() {
    PutBack();
    std::string all;
    std::array<char, 4096> some{};
    for (ssize_t got = 0; (got = read(read_, some.data(), some.size())) > 0;) {
      all.append(some.data(), static_cast<size_t>(got));
    }
    return all;
  }

 private:
  void PutBack() {
    if (before_ < 0) return;
    dup2(before_, STDERR_FILENO);
    close(before_);
    before_ = -1;
  }

  int before_;
  int read_ = -1;
};

class GrpcLogTest : public ::testing::Test {
 protected:
  // Sets the verbosity the way the first channel of a process does. Until it is set, gRPC logs
  // nothing.
  GrpcLogTest() { gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR); }
};
using GrpcLogDeathTest = GrpcLogTest;

std::string WrittenAs(LogFormat format) {
  PipeAsStderr pipe;
  {
    const Logger logger(LogLevel::kInfo, format);
    const GrpcLog grpc_log(logger);
    gpr_log("tls.cc", 7, GPR_LOG_SEVERITY_ERROR, "no \"%s\" of %d", "key", 2);
  }
  return pipe.Take();
}

TEST_F(GrpcLogTest, ALineOfGrpcsIsALineOfOursAsText) {
  EXPECT_THAT(WrittenAs(LogFormat::kText),
              HasSubstr("Z ERROR grpc message=\"no \\\"key\\\" of 2\" source=tls.cc:7\n"));
}

TEST_F(GrpcLogTest, ALineOfGrpcsIsALineOfOursAsJson) {
  EXPECT_THAT(WrittenAs(LogFormat::kJson),
              HasSubstr(R"("level":"ERROR","event":"grpc","message":"no \"key\" of 2",)"
                        R"("source":"tls.cc:7"})"
                        "\n"));
}

TEST_F(GrpcLogTest, LevelsAreGrpcsAndLongMessagesAreCut) {
  std::vector<std::string> lines;
  const Logger logger(LogLevel::kInfo, [&](absl::string_view line) { lines.emplace_back(line); });
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
  {
    const GrpcLog grpc_log(logger);
    gpr_log("a.cc", 1, GPR_LOG_SEVERITY_DEBUG, "debug");
    gpr_log("a.cc", 2, GPR_LOG_SEVERITY_INFO, "info");
    gpr_log("a.cc", 3, GPR_LOG_SEVERITY_ERROR, "%s", std::string(1025, 'x').c_str());
  }
  gpr_log("a.cc", 4, GPR_LOG_SEVERITY_ERROR, "nobody is there");
  const std::string cut(1024, 'x');
  EXPECT_THAT(lines, ElementsAre(HasSubstr("INFO grpc message=info source=a.cc:2"),
                                 AllOf(HasSubstr(absl::StrCat("ERROR grpc message=", cut)),
                                       Not(HasSubstr(absl::StrCat(cut, "x"))))));
}

// Nobody reads the full pipe. If gRPC waited for a reader, the test would hang.
TEST_F(GrpcLogTest, NobodyWaitsForAReaderOfStderr) {
  PipeAsStderr pipe;
  pipe.Fill();
  const Logger logger(LogLevel::kInfo);
  const GrpcLog grpc_log(logger);
  for (int i = 0; i < 10'000; ++i) gpr_log("a.cc", i, GPR_LOG_SEVERITY_ERROR, "again");
  EXPECT_GT(logger.drops().rate, 0);
}

// The message of a failed assertion is written at once, not by the log's own thread, because the
// process would end before that thread could write it.
TEST_F(GrpcLogDeathTest, AnAssertionIsToldOfBeforeTheProcessEnds) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Logger silent(LogLevel::kOff);
  EXPECT_DEATH(
      {
        const GrpcLog grpc_log(silent);
        const bool round = false;
        GPR_ASSERT(round);
      },
      "grpc_log_test.cc:[0-9]+: assertion failed: round");
}

}  // namespace
}  // namespace phimap::testing
