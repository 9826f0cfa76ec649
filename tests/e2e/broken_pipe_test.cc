// Readers of standard output and standard error that are gone.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "gmock/gmock.h"
#include "tests/e2e/cli_fixture.h"

namespace phimap::e2e {
namespace {

using ::testing::HasSubstr;

// The end to write to of a pipe whose reader is gone. Children inherit it.
class DeadPipe {
 public:
  DeadPipe() {
    PHIMAP_CHECK(pipe(ends_) == 0);
    close(ends_[0]);
  }
  ~DeadPipe() { close(ends_[1]); }
  DeadPipe(const DeadPipe&) = delete;
  DeadPipe& operator=(const DeadPipe&) = delete;

  // Starts the command that follows with this pipe as its descriptor `fd`.
  std::vector<std::string> LauncherWith(int fd) const {
    return {"/bin/bash", "-c", absl::StrCat("exec \"$@\" ", fd, ">&", ends_[1]), "bash"};
  }

 private:
  int ends_[2];
};

bool HasEnded(const Process& process) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

class BrokenPipeTest : public CliFixture {
 protected:
  // Children inherit a signal that is ignored, whoever started the test.
  BrokenPipeTest() { std::signal(SIGPIPE, SIG_DFL); }

  ProcessResult PhimapWithDead(int fd, const std::vector<std::string>& words) {
    std::vector<std::string> arguments = pipe_.LauncherWith(fd);
    arguments.insert(arguments.end(), {PHIMAP_BINARY, "--server=" + server_.address()});
    arguments.insert(arguments.end(), words.begin(), words.end());
    return RunProcess(arguments);
  }
  std::string Rows() {
    std::string rows = "a,b\n";
    for (int i = 0; i < 2000; ++i) absl::StrAppend(&rows, i % 17, ",", i % 5, "\n");
    return File(rows);
  }

  const DeadPipe pipe_;
};

TEST_F(BrokenPipeTest, CommandsDoTheirWorkWhenNobodyReadsTheirMessages) {
  const std::string input = Rows();
  const std::string output = folder_.path() + "/o.csv";
  const ProcessResult built = PhimapWithDead(
      STDERR_FILENO,
      {"build", "small", "--input=" + input, "--mapping=f1(landmarks=5)", "--kernel=linear()"});
  EXPECT_EQ(built.exit_code, 0);
  EXPECT_THAT(built.out, HasSubstr("small@1"));
  const ProcessResult mapped = PhimapWithDead(
      STDERR_FILENO, {"transform", "small", "--input=" + input, "--output=" + output});
  EXPECT_EQ(mapped.exit_code, 0);
  const std::string features = Read(output);
  EXPECT_EQ(std::count(features.begin(), features.end(), '\n'), 2001);
  // Errors keep their codes.
  EXPECT_EQ(PhimapWithDead(STDERR_FILENO, {"show", "nothing"}).exit_code, 3);
  EXPECT_EQ(PhimapWithDead(STDERR_FILENO, {"show", "--jsn"}).exit_code, 2);
}

TEST_F(BrokenPipeTest, DataThatNobodyReadsEndsTheCommandWithAnError) {
  const std::string input = Rows();
  ASSERT_EQ(Phimap({"build", "small", "--input=" + input, "--mapping=f1(landmarks=5)",
                    "--kernel=linear()"})
                .exit_code,
            0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"transform", "small", "--input=" + input, "--output=-"},
           {"transform", "small", "--input=" + input, "--output=/dev/stdout"},
           {"export", "small", "--output=-"},
           {"list"},
           {"show", "small", "--json"}}) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const ProcessResult failed = PhimapWithDead(STDOUT_FILENO, words);
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_THAT(failed.err, HasSubstr("phimap: writing "));
  }
}

TEST_F(BrokenPipeTest, AServerServesOnWhenNobodyReadsItsLog) {
  TemporaryFolder data;
  ServerProcess server(data.path(), {"--log_level=debug"}, pipe_.LauncherWith(STDERR_FILENO));
  const auto phimap = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {PHIMAP_BINARY, "--server=" + server.address()});
    return RunProcess(words);
  };
  const std::string input = Rows();
  const ProcessResult built = phimap(
      {"build", "small", "--input=" + input, "--mapping=f1(landmarks=5)", "--kernel=linear()"});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(phimap({"show", "nothing"}).exit_code, 3);
  EXPECT_EQ(phimap({"verify", "small"}).exit_code, 0);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait().exit_code, 0);
}

// The one line on stdout says that it is ready; who is asked instead is the server.
TEST_F(BrokenPipeTest, AServerServesWhenNobodyReadsThatItIsReady) {
  TemporaryFolder data;
  const std::string socket = data.path() + "/socket";
  std::vector<std::string> words = pipe_.LauncherWith(STDOUT_FILENO);
  words.insert(words.end(), {PHIMAPD_BINARY, "--data_dir=" + data.path(), "--listen=127.0.0.1:0",
                             "--http=none", "--unix_listen=" + socket});
  Process server(words);
  ProcessResult health;
  do {
    health = RunProcess({PHIMAP_BINARY, "--server=unix:" + socket, "health", "--timeout=60"});
  } while (health.exit_code != 0 && !HasEnded(server));
  EXPECT_EQ(health.exit_code, 0) << health.err;
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait().exit_code, 0);
}

}  // namespace
}  // namespace phimap::e2e
