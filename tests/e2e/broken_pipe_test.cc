// Tests programs whose standard output or standard error is a pipe whose reader is gone or never
// reads.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "grpcpp/grpcpp.h"
#include "phimap/v1/mapping_service.grpc.pb.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

// The writing end of a pipe whose reading end is closed. Child processes inherit it.
class DeadPipe {
 public:
  DeadPipe() {
    PHIMAP_CHECK(pipe(ends_) == 0);
    close(ends_[0]);
  }
  ~DeadPipe() { close(ends_[1]); }
  DeadPipe(const DeadPipe&) = delete;
  DeadPipe& operator=(const DeadPipe&) = delete;

  // Returns the beginning of a command line. It starts the command after it with this pipe as file
  // descriptor `fd`.
  std::vector<std::string> LauncherWith(int fd) const {
    return {"/bin/bash", "-c", absl::StrCat("exec \"$@\" ", fd, ">&", ends_[1]), "bash"};
  }

 private:
  int ends_[2];
};

// The writing end of a pipe that nobody reads. The pipe holds one page. Child processes inherit
// only this end.
class UnreadPipe {
 public:
  UnreadPipe() {
    PHIMAP_CHECK(pipe(ends_) == 0);
    PHIMAP_CHECK(fcntl(ends_[0], F_SETFD, FD_CLOEXEC) == 0);
    PHIMAP_CHECK(fcntl(ends_[1], F_SETPIPE_SZ, 4096) == 4096);
  }
  ~UnreadPipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  UnreadPipe(const UnreadPipe&) = delete;
  UnreadPipe& operator=(const UnreadPipe&) = delete;

  std::vector<std::string> LauncherWith(int fd) const {
    return {"/bin/bash", "-c", absl::StrCat("exec \"$@\" ", fd, ">&", ends_[1]), "bash"};
  }
  // Returns whether a write would block.
  bool full() const {
    pollfd end{.fd = ends_[1], .events = POLLOUT, .revents = 0};
    return poll(&end, 1, 0) == 0;
  }

 private:
  int ends_[2];
};

// Makes up to `calls` calls that the server refuses and logs. Stops at the first call without an
// answer within a minute. Returns the number of refusals.
int AnsweredRefusals(const ServerProcess& server, int calls) {
  const auto stub = v1::MappingService::NewStub(
      grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  int answered = 0;
  for (int i = 0; i < calls; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::GetMappingRequest request;
    request.set_name("nothing");
    v1::Mapping mapping;
    const grpc::Status status = stub->GetMapping(&context, request, &mapping);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) break;
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) ++answered;
  }
  return answered;
}

// Returns the current value of phimap_log_lines_dropped_total for `reason`.
double DroppedLines(const ServerProcess& server, const std::string& reason) {
  const std::string series =
      absl::StrCat("phimap_log_lines_dropped_total{reason=\"", reason, "\"} ");
  const std::string text = HttpGet(server.http_address(), "/metrics");
  const size_t at = text.find(series);
  return at == std::string::npos ? -1 : std::atof(text.c_str() + at + series.size());
}

bool HasEnded(const Process& process) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

class BrokenPipeTest : public CliFixture {
 protected:
  // Restores the default action of SIGPIPE. Otherwise, if this test's parent ignored the signal,
  // the programs under test would inherit that.
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
      {"build", "small", "--input=" + input, "--spec=f1(landmarks=5)", "--kernel=linear()"});
  EXPECT_EQ(built.exit_code, 0);
  EXPECT_THAT(built.out, HasSubstr("small@1"));
  const ProcessResult mapped = PhimapWithDead(
      STDERR_FILENO, {"transform", "small", "--input=" + input, "--output=" + output});
  EXPECT_EQ(mapped.exit_code, 0);
  const std::string features = Read(output);
  EXPECT_EQ(std::count(features.begin(), features.end(), '\n'), 2001);
  // A command that fails has the usual exit code although nobody reads its standard error.
  EXPECT_EQ(PhimapWithDead(STDERR_FILENO, {"show", "nothing"}).exit_code, 3);
  EXPECT_EQ(PhimapWithDead(STDERR_FILENO, {"show", "--jsn"}).exit_code, 2);
}

// As `yes | head` ends. A shell reports a process that SIGPIPE ended with 128 + 13.
TEST_F(BrokenPipeTest, DataThatNobodyReadsEndsTheCommandQuietly) {
  const std::string input = Rows();
  ASSERT_EQ(
      Phimap({"build", "small", "--input=" + input, "--spec=f1(landmarks=5)", "--kernel=linear()"})
          .exit_code,
      0);
  for (const std::string& words : std::vector<std::string>{
           "transform small -o - --input=" + input,
           "transform small -o /dev/stdout --input=" + input, std::string("export small -o -"),
           std::string("list"), std::string("show small --json"), std::string("help build")}) {
    SCOPED_TRACE(words);
    const ProcessResult ended =
        RunProcess({"/bin/bash", "-c",
                    absl::StrCat(PHIMAP_BINARY, " --server=", server_.address(), " ", words,
                                 " | true; echo ${PIPESTATUS[0]}")});
    // The pipe can still hold what a command wrote before its reader ended.
    EXPECT_THAT(ended.out, ::testing::AnyOf("141\n", "0\n"));
    EXPECT_EQ(ended.err, "");
    std::vector<std::string> dead = absl::StrSplit(words, ' ');
    const ProcessResult failed = PhimapWithDead(STDOUT_FILENO, dead);
    EXPECT_EQ(failed.exit_code, -SIGPIPE);
    EXPECT_EQ(failed.err, "");
  }
}

// A reader of the features that goes away leaves nothing of them behind, and a sweep whose table
// nobody reads keeps its points.
TEST_F(BrokenPipeTest, ACommandThatNobodyReadsTidiesUp) {
  const std::string input = Rows();
  const std::string points = folder_.path() + "/points.jsonl";
  std::vector<std::string> sweep = {"sweep",         "--input=" + input,  "--label=b", "--spec=f1",
                                    "--landmarks=5", "--kernel=linear()", "-o",        points};
  EXPECT_EQ(PhimapWithDead(STDOUT_FILENO, sweep).exit_code, -SIGPIPE);
  const std::string kept = Read(points);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 1);
  EXPECT_THAT(Phimap({"list"}).out, Not(HasSubstr("sweep-")));
}

TEST_F(BrokenPipeTest, AServerServesOnWhenNobodyReadsItsLog) {
  TemporaryFolder data;
  ServerProcess server(data.path(), {"--log_level=debug"}, pipe_.LauncherWith(STDERR_FILENO));
  const auto phimap = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {PHIMAP_BINARY, "--server=" + server.address()});
    return RunProcess(words);
  };
  const std::string input = Rows();
  const ProcessResult built =
      phimap({"build", "small", "--input=" + input, "--spec=f1(landmarks=5)", "--kernel=linear()"});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(phimap({"show", "nothing"}).exit_code, 3);
  EXPECT_EQ(phimap({"verify", "small"}).exit_code, 0);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait().exit_code, 0);
}

TEST_F(BrokenPipeTest, AServerWhoseLogNobodyReadsAnswersAndStops) {
  constexpr int kCalls = 2000;
  const UnreadPipe unread;
  TemporaryFolder data;
  ServerProcess server(data.path(), {"--log_level=debug"}, unread.LauncherWith(STDERR_FILENO));
  EXPECT_EQ(AnsweredRefusals(server, kCalls), kCalls);
  EXPECT_TRUE(unread.full());
  EXPECT_GT(DroppedLines(server, "rate"), 0);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait().exit_code, 0);
}

TEST_F(BrokenPipeTest, AFloodOfRefusalsWritesNoMoreThanItsRateAndSaysWhatIsMissing) {
  constexpr int kCalls = 2000;
  TemporaryFolder data;
  ServerProcess server(data.path());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(AnsweredRefusals(server, kCalls), kCalls);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  server.process().Signal(SIGTERM);
  const std::string log = server.process().Wait().err;
  const auto lines = [&log](absl::string_view text) {
    const std::vector<std::string> pieces = absl::StrSplit(log, text);
    return static_cast<int>(pieces.size()) - 1;
  };
  // The log may write 200 lines at once, and then 100 lines per second.
  const int written = lines(" INFO rpc ");
  EXPECT_GE(written, 200);
  EXPECT_LE(written, 201 + 100 * took.count());
  ASSERT_LT(written, kCalls) << "the calls took " << took.count() << " s, too long for a flood";
  EXPECT_THAT(log, HasSubstr("log_lines_dropped reason=rate count="));
}

TEST_F(BrokenPipeTest, AServerSurvivesThatTheReaderOfItsLogGoesAway) {
  TemporaryFolder data;
  auto pipe = std::make_unique<UnreadPipe>();
  ServerProcess server(data.path(), {"--log_level=debug"}, pipe->LauncherWith(STDERR_FILENO));
  EXPECT_EQ(AnsweredRefusals(server, 1), 1);
  pipe = nullptr;
  EXPECT_EQ(AnsweredRefusals(server, 1000), 1000);
  EXPECT_GT(DroppedLines(server, "write_failed"), 0);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait().exit_code, 0);
}

// The server prints one line on stdout when it is ready. Here nobody reads the line, so the test
// polls the server's health instead.
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
