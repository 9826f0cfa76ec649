// When the system refuses a thread, memory or a system call, the call or the connection ends with
// an error: the process serves on, and never answers wrongly.
//
// Each test fails the first call to the system, then the second, and so on, until the work is done
// before the chosen call comes.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "gtest/gtest.h"
#include "tests/e2e/failing_calls.h"
#include "tests/e2e/server_process.h"
#include "tests/support/certificates.h"
#include "tests/support/fault_step.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

// No call may wait longer than this for its error.
constexpr absl::Duration kCallTimeout = absl::Seconds(20);

class OutOfResourcesTest : public ::testing::Test {
 protected:
  OutOfResourcesTest() : path_(folder_.path() + "/failing") {
    std::ofstream(path_) << std::string(sizeof(FailingCalls), '\0');
    const int file = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    void* const at =
        mmap(nullptr, sizeof(FailingCalls), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    PHIMAP_CHECK(at != MAP_FAILED);
    calls_ = static_cast<FailingCalls*>(at);
  }
  ~OutOfResourcesTest() override { munmap(calls_, sizeof(FailingCalls)); }

  std::string Path(absl::string_view name) const { return absl::StrCat(folder_.path(), "/", name); }
  std::string Data() const { return Path("data"); }

  // The flags of a server with TLS, whose authority is in ca.pem.
  std::vector<std::string> Tls() const {
    testing::CertificateAuthority authority("phimap test authority");
    const testing::KeyPair pair = authority.Issue();
    std::ofstream(Path("ca.pem")) << authority.certificate();
    std::ofstream(Path("server.pem")) << pair.certificate;
    std::ofstream(Path("server.key")) << pair.key;
    return {"--tls_certificate=" + Path("server.pem"), "--tls_key=" + Path("server.key")};
  }

  // A command line that starts phimapd_failing with the arguments of phimapd that follow it.
  std::vector<std::string> Launcher() const {
    return {"/usr/bin/env",
            absl::StrCat(kFailingCallsVariable, "=", path_),
            "/bin/sh",
            "-c",
            "shift; exec \"$0\" \"$@\"",
            PHIMAPD_FAILING_BINARY};
  }

  void Fail(FailingCall kind, int64_t number, bool and_all_later = false) {
    calls_->failed = calls_->failed_in_library = 0;
    calls_->until = number;
    calls_->and_all_later = and_all_later ? 1 : 0;
    calls_->kind = kind;
  }

  // Ends the failures, and returns how many there were.
  int64_t StopFailing() {
    calls_->kind = FailingCall::kNone;
    return calls_->failed.load();
  }

  TemporaryFolder folder_;
  const std::string path_;
  FailingCalls* calls_;
};

// Whether the process ends within kCallTimeout; it is not reaped. A process that dies closes its
// sockets some time before the system says that it has ended, so what its client has just been
// told is too early to ask.
bool Ends(ServerProcess& server) {
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, server.process().pid(), 0));
  PHIMAP_CHECK(process >= 0);
  pollfd ended{process, POLLIN, 0};
  const int count = poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(kCallTimeout)));
  close(process);
  return count == 1;
}

// How to reach a server, without a retry.
struct Reached {
  std::string address;
  // File of the authority that signed the server's certificate; empty without TLS.
  std::string authority = {};

  std::unique_ptr<client::Client> Connect() const {
    client::ConnectOptions options;
    options.retry.max_attempts = 1;
    options.call_timeout = kCallTimeout;
    options.tls.ca_file = authority;
    return client::Client::Connect(address, options).value();
  }
};

absl::StatusOr<std::string> Built(client::Client& client, const std::string& mapping) {
  GeneratedRows rows(300, 4, 3);
  const absl::StatusOr<v1::Version> version =
      client.Build({.name = mapping,
                    .spec = "f2(landmarks=20, serving_type=float64)",
                    .kernel = "rbf(gamma=scale)",
                    .timeout = kCallTimeout},
                   rows);
  if (!version.ok()) return version.status();
  return version->ref().digest();
}

client::ExampleBlock SomeRows() {
  return client::MakeRowBlock(std::vector<float>{1, 2, 3, 4, -1, 0, .5, 2}, 4);
}

absl::StatusOr<std::string> Features(client::Client& client) {
  absl::StatusOr<client::TransformResult> result = client.Transform("rows", SomeRows());
  if (!result.ok()) return result.status();
  return result->features.values_le;
}

absl::StatusOr<std::string> StreamedFeatures(client::Client& client) {
  GeneratedRows rows(40, 4, 5);
  std::string all;
  const absl::StatusOr<client::TransformStreamResult> result =
      client.TransformStream("rows", rows,
                             [&](const client::RowBlock& features) {
                               all += features.values_le;
                               return absl::OkStatus();
                             },
                             {.rows_per_request = 10, .timeout = kCallTimeout});
  if (!result.ok()) return result.status();
  return all;
}

absl::StatusOr<std::string> Names(client::Client& client) {
  absl::StatusOr<v1::Mapping> mapping = client.GetMapping("rows");
  if (!mapping.ok()) return mapping.status();
  return absl::StrCat(mapping->name(), " ", mapping->version_count());
}

absl::StatusOr<std::string> Release(client::Client& client) {
  absl::StatusOr<v1::Alias> alias = client.SetAlias("rows@1", "prod");
  if (!alias.ok()) return alias.status();
  return absl::StrCat(alias->name(), "=", alias->version());
}

// Builds a new version, whose digest is that of the one before: seed and rows are the same.
absl::StatusOr<std::string> BuildAgain(client::Client& client) { return Built(client, "again"); }

absl::StatusOr<std::string> Exported(client::Client& client) {
  std::string bytes;
  const absl::StatusOr<client::ExportResult> result =
      client.Export("rows", [&](absl::string_view piece) {
        bytes.append(piece.data(), piece.size());
        return absl::OkStatus();
      });
  if (!result.ok()) return result.status();
  return bytes;
}

// The artifact of "rows" becomes the version that has it already.
absl::StatusOr<std::string> Imported(client::Client& client) {
  absl::StatusOr<std::string> bytes = Exported(client);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<v1::Version> version = client.Import(
      "copy", [&](size_t) { return absl::StatusOr<std::string>(std::exchange(*bytes, "")); });
  if (!version.ok()) return version.status();
  return client::ReferenceTo(version->ref());
}

absl::StatusOr<std::string> Evaluated(client::Client& client) {
  LabeledGeneratedRows rows(200, 4, 7);
  const absl::StatusOr<v1::Evaluation> evaluation =
      client.Evaluate({.reference = "rows", .timeout = kCallTimeout}, rows);
  if (!evaluation.ok()) return evaluation.status();
  return absl::StrCat(evaluation->errors(), " of ", evaluation->tested_rows());
}

// Trains a version of its own name, with features of its own rows.
absl::StatusOr<std::string> Trained(client::Client& client) {
  LabeledGeneratedRows rows(300, 4, 7);
  const absl::StatusOr<v1::Version> version = client.Train(
      {.build = client::TrainedFeatures{.name = "trained",
                                        .spec = "f2(landmarks=20, serving_type=float64)",
                                        .kernel = "rbf(gamma=scale)"},
       .timeout = kCallTimeout},
      rows);
  if (!version.ok()) return version.status();
  const absl::StatusOr<client::PredictResult> answers =
      client.Predict(client::ReferenceTo(version->ref()), SomeRows());
  if (!answers.ok()) return answers.status();
  return absl::StrCat(version->ref().digest(), " ", answers->predictions.labels[0]);
}

// AddressSanitizer's build skips what takes minutes there: 900 failures, each with two trainings.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

struct Work {
  const char* name;
  std::function<absl::StatusOr<std::string>(client::Client&)> run;
  bool tls = false;
};

std::vector<Work> Works() {
  std::vector<Work> works = {
      {"Transform", Features},
      {"TransformStream", StreamedFeatures},
      {"GetMapping", Names},
      {"SetAlias", Release},
      {"Build", BuildAgain},
      {"Export", Exported},
      {"Import", Imported},
      {"Evaluate", Evaluated},
      {"TransformOverTls", Features, /*tls=*/true},
  };
  if (!kSlow) works.push_back({"Train", Trained});
  return works;
}

// Knows what the answer to `work` is when nothing fails.
class Judge {
 public:
  Judge(const Work& work, client::Client& healthy) : work_(work), right_(work.run(healthy)) {
    EXPECT_TRUE(right_.ok()) << right_.status();
  }

  // Checks what became of the work when a call failed, and that the next client of `server` finds
  // everything as before. `restarted`: starts the server again if it has ended and may have.
  void Check(const absl::StatusOr<std::string>& result, const Reached& server,
             const std::function<bool()>& restarted) {
    if (result.ok()) {
      EXPECT_EQ(*result, *right_);
    } else {
      EXPECT_NE(result.status().code(), absl::StatusCode::kDeadlineExceeded) << result.status();
      ++errors_;
    }
    absl::StatusOr<std::string> after = work_.run(*server.Connect());
    if (!after.ok() && restarted()) after = work_.run(*server.Connect());
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(*after, *right_);
  }

  int errors() const { return errors_; }

 private:
  const Work& work_;
  const absl::StatusOr<std::string> right_;
  int errors_ = 0;
};

class FailingKindTest : public OutOfResourcesTest, public ::testing::WithParamInterface<int> {
 protected:
  // The loop does other work too, such as timers, so several runs without a failure in a row show
  // that the work has fewer calls.
  static constexpr int kRunsWithoutFailure = 3;

  void FailEach(FailingCall kind) {
    const Work work = Works()[static_cast<size_t>(GetParam())];
    std::vector<std::string> flags = work.tls ? Tls() : std::vector<std::string>();
    flags.push_back("--drain_seconds=60");
    auto server = std::make_unique<ServerProcess>(Data(), flags, Launcher());
    Reached reached{server->address(), work.tls ? Path("ca.pem") : ""};
    ASSERT_TRUE(Built(*reached.Connect(), "rows").ok());
    Judge judge(work, *reached.Connect());
    int64_t number = 1;
    int failures = 0;
    int ends = 0;
    int64_t in_library = 0;
    for (int unharmed = 0; unharmed < kRunsWithoutFailure && !HasFailure();
         number += testing::kFaultStep) {
      SCOPED_TRACE(absl::StrCat(work.name, ", failing call ", number));
      Fail(kind, number);
      const absl::StatusOr<std::string> result = work.run(*reached.Connect());
      const bool failed = StopFailing() > 0;
      unharmed = failed ? 0 : unharmed + 1;
      failures += failed ? 1 : 0;
      in_library += calls_->failed_in_library;
      // Only a library that cannot go on may end the process, at once or when it next uses what it
      // left behind. What was acknowledged is there when the server has started again.
      const auto restarted = [&] {
        if (in_library == 0 || !Ends(*server)) return false;
        ++ends;
        in_library = 0;
        server.reset();
        server = std::make_unique<ServerProcess>(Data(), flags, Launcher());
        reached.address = server->address();
        return true;
      };
      judge.Check(result, reached, restarted);
    }
    // The test means nothing if no call failed, or if no failure ever harmed the work.
    EXPECT_GT(failures, 0);
    EXPECT_GT(judge.errors(), 0);
    server->process().Signal(SIGTERM);
    // Sooner than a server would that still has something of a call that failed.
    const bool ended = Ends(*server);
    EXPECT_TRUE(ended);
    if (!ended) server->process().Signal(SIGKILL);
    const ProcessResult end = server->process().Wait();
    EXPECT_TRUE(end.exit_code == 0 || in_library > 0) << end.exit_code << end.err;
    std::printf("%s: of %d failures %d reached the client, %d ended the process\n", work.name,
                failures, judge.errors(), ends);
  }
};

TEST_P(FailingKindTest, AnAllocationThatFailsEndsTheCallOrTheConnection) {
  FailEach(FailingCall::kAllocation);
}

TEST_P(FailingKindTest, ASystemCallThatFailsEndsTheCallOrTheConnection) {
  FailEach(FailingCall::kSystemCall);
}

INSTANTIATE_TEST_SUITE_P(Works, FailingKindTest,
                         ::testing::Range(0, static_cast<int>(Works().size())),
                         [](const ::testing::TestParamInfo<int>& info) {
                           return Works()[static_cast<size_t>(info.param)].name;
                         });

// For each thread that a server starts: without it, the server says so and ends.
TEST_F(OutOfResourcesTest, AThreadThatIsMissingAtTheStartIsNamed) {
  std::vector<std::string> command = Launcher();
  for (const char* argument : {PHIMAPD_BINARY, "--listen=127.0.0.1:0", "--http=127.0.0.1:0"}) {
    command.push_back(argument);
  }
  command.push_back("--data_dir=" + Data());
  int64_t number = 1;
  for (;; ++number) {
    SCOPED_TRACE(number);
    Fail(FailingCall::kThread, number, /*and_all_later=*/true);
    Process process(command);
    const std::string line = process.ReadLine();
    if (StopFailing() == 0) {
      EXPECT_THAT(line, HasSubstr("phimapd ready"));
      process.Signal(SIGTERM);
      EXPECT_EQ(process.Wait().exit_code, 0);
      break;
    }
    const ProcessResult result = process.Wait();
    ASSERT_EQ(result.exit_code, 1) << line << result.err;
    EXPECT_THAT(result.err, HasSubstr("cannot get the thread for"));
    EXPECT_THAT(result.err, HasSubstr("RLIMIT_NPROC"));
  }
  EXPECT_GT(number, 10);
}

// A server that can have no more threads serves, builds and stops.
TEST_F(OutOfResourcesTest, WithoutMoreThreadsAServerServesBuildsAndStops) {
  ServerProcess server(Data(), {}, Launcher());
  Fail(FailingCall::kThread, 1, /*and_all_later=*/true);
  const Reached reached{server.address()};
  EXPECT_TRUE(Built(*reached.Connect(), "rows").ok());
  EXPECT_TRUE(Features(*reached.Connect()).ok());
  server.process().Signal(SIGTERM);
  const ProcessResult end = server.process().Wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  StopFailing();
}

// The control of these tests: without a limit nothing fails, so what they see comes from it.
TEST_F(OutOfResourcesTest, NothingFailsUnlessItIsAsked) {
  ServerProcess server(Data(), {}, Launcher());
  const Reached reached{server.address()};
  ASSERT_TRUE(Built(*reached.Connect(), "rows").ok());
  for (const Work& work : Works()) EXPECT_TRUE(work.run(*reached.Connect()).ok()) << work.name;
  EXPECT_EQ(StopFailing(), 0);
}

}  // namespace
}  // namespace phimap::e2e
