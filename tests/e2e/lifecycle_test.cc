// Tests the server from an operator's view: its start, the flags that it refuses, its metrics and
// its shutdown.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

absl::StatusOr<v1::Version> BuildSmall(client::Client& client, const std::string& name) {
  GeneratedRows rows(200, 4, 3);
  return client.Build({.name = name, .spec = "f2(landmarks=20)", .kernel = "rbf(gamma=scale)"},
                      rows);
}

TEST(LifecycleTest, StopsWithZeroOnSigtermAndServesTheSameVersionsAgain) {
  TemporaryFolder folder;
  std::string digest;
  {
    ServerProcess server(folder.path());
    const auto version = BuildSmall(*server.Connect(), "letters").value();
    digest = version.ref().digest();
    server.process().Signal(SIGTERM);
    EXPECT_EQ(server.process().Wait().exit_code, 0);
  }
  ServerProcess server(folder.path());
  const auto version = server.Connect()->GetVersion("letters@1").value();
  EXPECT_EQ(version.ref().digest(), digest);
}

TEST(LifecycleTest, ASecondServerOnTheSameFolderIsRefusedAndTheFirstServesOn) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  const ProcessResult second = RunProcess({PHIMAPD_BINARY, "--data_dir=" + folder.path(),
                                           "--listen=127.0.0.1:0", "--http=127.0.0.1:0"});
  EXPECT_NE(second.exit_code, 0);
  EXPECT_EQ(second.out, "");
  EXPECT_THAT(second.err, HasSubstr("lock"));
  EXPECT_TRUE(BuildSmall(*server.Connect(), "letters").ok());
}

TEST(LifecycleTest, ATakenPortIsRefused) {
  TemporaryFolder folder;
  TemporaryFolder other;
  ServerProcess server(folder.path());
  const ProcessResult second = RunProcess({PHIMAPD_BINARY, "--data_dir=" + other.path(),
                                           "--listen=" + server.address(), "--http=127.0.0.1:0"});
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr(server.address()));
}

// A terminal that closes sends SIGHUP.
TEST(LifecycleTest, AHangupChangesNothing) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  const auto client = server.Connect();
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(BuildSmall(*client, "one").ok());
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(BuildSmall(*client, "two").ok());
}

TEST(LifecycleTest, AnAddressThatOthersReachNeedsInsecure) {
  for (const char* flag : {"--listen=0.0.0.0:0", "--http=0.0.0.0:0", "--listen=[::]:0"}) {
    SCOPED_TRACE(flag);
    TemporaryFolder folder;
    const std::string data_dir = folder.path() + "/data";
    const ProcessResult refused = RunProcess({PHIMAPD_BINARY, "--data_dir=" + data_dir, flag});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--insecure"));
    EXPECT_FALSE(std::filesystem::exists(data_dir));
  }
}

TEST(LifecycleTest, AProxyThatIsNoIpAddressIsRefused) {
  for (const std::string proxy : {"foo", "127.0.0.1:80", "10.0.0.0/8", "localhost", "127.1"}) {
    SCOPED_TRACE(proxy);
    TemporaryFolder folder;
    const std::string data_dir = folder.path() + "/data";
    const ProcessResult refused =
        RunProcess({PHIMAPD_BINARY, "--data_dir=" + data_dir, "--proxy=" + proxy});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--proxy"), HasSubstr("expected an IP address"),
                                   HasSubstr("\"" + proxy + "\"")));
    EXPECT_FALSE(std::filesystem::exists(data_dir));
  }
}

// A socket that listens on 0.0.0.0 accepts IPv4 and IPv6. It reports a local client as
// ::ffff:127.0.0.1.
TEST(LifecycleTest, AProxyIsKnownInAnyFormOnAnySocket) {
  for (const std::string proxy : {"127.0.0.1", "::ffff:127.0.0.1"}) {
    for (const std::string listen : {"127.0.0.1:0", "0.0.0.0:0"}) {
      SCOPED_TRACE(absl::StrCat("--proxy=", proxy, " --listen=", listen));
      TemporaryFolder folder;
      ServerProcess server(folder.path(), {"--listen=" + listen, "--insecure", "--proxy=" + proxy,
                                           "--max_connections_per_host=1"});
      const auto first = server.Connect();
      const auto second = server.Connect();
      EXPECT_TRUE(BuildSmall(*first, "one").ok());
      EXPECT_TRUE(BuildSmall(*second, "two").ok());
    }
  }
}

// Returns the error with which phimapd refuses `flags`. REQUIRES: it refuses them.
std::string Refusal(std::vector<std::string> flags) {
  flags.insert(flags.begin(), PHIMAPD_BINARY);
  const ProcessResult refused = RunProcess(flags);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  return refused.err;
}

TEST(LifecycleTest, AProxyProtocolThatCannotBeMeantIsRefused) {
  TemporaryFolder folder;
  const std::string data_dir = "--data_dir=" + folder.path() + "/data";
  EXPECT_THAT(Refusal({data_dir, "--proxy_protocol=10.0.0.0/8"}),
              AllOf(HasSubstr("--proxy_protocol"), HasSubstr("expected an IP address"),
                    HasSubstr("\"10.0.0.0/8\"")));
  EXPECT_THAT(Refusal({data_dir, "--proxy=::ffff:10.0.0.7", "--proxy_protocol=10.0.0.7"}),
              AllOf(HasSubstr("--proxy_protocol"), HasSubstr("10.0.0.7 is in --proxy too")));
  EXPECT_THAT(Refusal({data_dir, "--proxy_protocol=unix"}),
              AllOf(HasSubstr("--proxy_protocol"), HasSubstr("--unix_listen")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/data"));
}

TEST(LifecycleTest, ALameDuckThatOutlastsTheDrainIsRefusedWithBothFlags) {
  TemporaryFolder folder;
  const std::string data_dir = "--data_dir=" + folder.path() + "/data";
  for (const char* lame_duck : {"5", "30"}) {
    EXPECT_THAT(
        Refusal({data_dir, absl::StrCat("--lame_duck_seconds=", lame_duck), "--drain_seconds=5"}),
        AllOf(HasSubstr("--lame_duck_seconds: expected less than --drain_seconds=5"),
              HasSubstr(absl::StrCat("got ", lame_duck))));
  }
  // These are allowed: a lame duck that is shorter than the drain; a short drain alone, which
  // shortens the default of --lame_duck_seconds; and 0 for both flags.
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--lame_duck_seconds=4", "--drain_seconds=5"},
                                             {"--drain_seconds=1"},
                                             {"--lame_duck_seconds=0", "--drain_seconds=0"}}) {
    EXPECT_NE(ServerProcess(folder.path() + "/data", flags).address(), "");
  }
}

TEST(LifecycleTest, FlagsOfTracesAreChecked) {
  TemporaryFolder folder;
  const std::string data_dir = "--data_dir=" + folder.path() + "/data";
  EXPECT_THAT(Refusal({data_dir, "--trace_endpoint=127.0.0.1:4318"}),
              HasSubstr("--trace_endpoint: expected http://HOST:PORT or https://HOST:PORT"));
  EXPECT_THAT(Refusal({data_dir, "--trace_endpoint=http://127.0.0.1:4318", "--trace_ratio=1.5"}),
              HasSubstr("--trace_ratio: expected a number from 0 to 1, got"));
}

TEST(LifecycleTest, MemoryForLessThanThreeMessagesIsWarnedOfWithBothFlags) {
  struct Case {
    const char* memory;
    bool warns;
  };
  for (const Case& one : {Case{"3145727", true}, Case{"3145728", false}}) {
    TemporaryFolder folder;
    ServerProcess server(folder.path(), {absl::StrCat("--memory_bytes=", one.memory),
                                         "--max_message_bytes=1048576"});
    // Log lines appear in the order of the events, so after "store_open" any warning must be there.
    const std::string log = server.process().AwaitErrors("store_open");
    const auto warning =
        AllOf(HasSubstr("WARNING memory_bytes_below_three_messages"),
              HasSubstr(absl::StrCat("memory_bytes=", one.memory, " max_message_bytes=1048576")));
    if (one.warns) {
      EXPECT_THAT(log, warning);
    } else {
      EXPECT_THAT(log, Not(HasSubstr("memory_bytes_below_three_messages")));
    }
  }
}

TEST(LifecycleTest, AValueThatIsMissingIsCalledSo) {
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--data_dir="}, {"--data_dir"}, {"--data_dir", ""}, {"--data_dir", "--insecure"}}) {
    EXPECT_THAT(Refusal(flags), HasSubstr("--data_dir: expected a path, got nothing\n"));
  }
  EXPECT_THAT(Refusal({"--data_dir=x", "--token_file="}),
              HasSubstr("--token_file: expected a path, got nothing\n"));
  EXPECT_THAT(Refusal({"--data_dir=x", "--max_builds="}),
              HasSubstr("--max_builds: expected an integer, got nothing\n"));
  EXPECT_THAT(Refusal({"--data_dir=x", "--listen="}),
              HasSubstr("--listen: expected a value, got nothing\n"));
}

TEST(LifecycleTest, ANumberThatIsNoIntegerOrOutOfRangeIsToldTheRange) {
  for (const char* bytes :
       {"1e9", "524287", "1099511627777", "1GiB", "-1", "1.5", "99999999999999999999"}) {
    EXPECT_THAT(Refusal({"--data_dir=x", absl::StrCat("--memory_bytes=", bytes)}),
                HasSubstr(absl::StrCat(
                    "--memory_bytes: expected an integer from 524288 to 1099511627776, got '",
                    bytes, "'\n")));
  }
  EXPECT_THAT(Refusal({"--data_dir=x", "--max_builds=1025"}),
              HasSubstr("--max_builds: expected an integer from 1 to 1024, got '1025'\n"));
}

TEST(LifecycleTest, WhatPhimapdDoesNotKnowIsNamedWithWhatWasMeant) {
  EXPECT_THAT(
      Refusal({"--data_dri=x"}),
      HasSubstr("phimapd: unknown flag --data_dri; did you mean --data_dir?\n  the flags are "
                "listed by 'phimapd --help'\n"));
  EXPECT_THAT(
      Refusal({"--data_dir=x", "--log_level=verbose"}),
      HasSubstr("--log_level: expected debug, info, warning, error or off, got 'verbose'\n"));
  EXPECT_THAT(Refusal({"--data_dir=x", "--data_dir=y"}),
              HasSubstr("--data_dir is given more than once; expected one value\n"));
  EXPECT_THAT(Refusal({"--data_dir=x", "extra"}),
              HasSubstr("expected no further word, got 'extra'"));
  EXPECT_THAT(Refusal({"admin", "check", "--qarantine"}),
              HasSubstr("unknown flag --qarantine; did you mean --quarantine?"));
}

TEST(LifecycleTest, ExitCodesAreTwoForUsageAndOneForFailureAndDocumented) {
  const ProcessResult missing = RunProcess({PHIMAPD_BINARY});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("--data_dir"));
  EXPECT_EQ(RunProcess({PHIMAPD_BINARY, "--data_dir=x", "--max_builds=0"}).exit_code, 2);
  const ProcessResult help = RunProcess({PHIMAPD_BINARY, "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Exit codes:"));
  EXPECT_EQ(RunProcess({PHIMAPD_BINARY, "--version"}).exit_code, 0);
}

TEST(LifecycleTest, NoFileOfTheStoreIsForOtherUsers) {
  const mode_t before = umask(022);  // the server inherits this umask
  TemporaryFolder folder;
  const std::string data_dir = folder.path() + "/data";
  ServerProcess server(data_dir);
  umask(before);
  ASSERT_TRUE(BuildSmall(*server.Connect(), "letters").ok());
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_dir)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_EQ(static_cast<int>(entry.status().permissions()), 0640) << entry.path();
  }
  EXPECT_GE(files, 5);  // a blob, the lock, the database and its two logs
}

TEST(LifecycleTest, TheReadyLineNamesTheUnixSocketToo) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/phimapd.sock";
  Process server({PHIMAPD_BINARY, "--data_dir=" + folder.path() + "/data", "--listen=127.0.0.1:0",
                  "--http=none", "--unix_listen=" + path});
  EXPECT_THAT(server.ReadLine(),
              MatchesRegex("phimapd ready: grpc=127.0.0.1:[0-9]+ http=none unix=" + path));
}

TEST(LifecycleTest, AReadOnlyOrMissingParentFolderIsNamed) {
  const ProcessResult missing =
      RunProcess({PHIMAPD_BINARY, "--data_dir=/proc/phimap-cannot-be-here", "--listen=127.0.0.1:0",
                  "--http=127.0.0.1:0"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/proc/phimap-cannot-be-here"));
}

TEST(LifecycleTest, MetricsCountCallsAndAreZeroBefore) {
  TemporaryFolder folder;
  ServerProcess server(folder.path());
  const std::string before = HttpGet(server.http_address(), "/metrics");
  EXPECT_THAT(before, HasSubstr("grpc_server_handled_total"));
  EXPECT_THAT(before, HasSubstr("grpc_method=\"Transform\""));
  const auto client = server.Connect();
  ASSERT_TRUE(BuildSmall(*client, "letters").ok());
  const std::string after = HttpGet(server.http_address(), "/metrics");
  bool counted = false;
  for (size_t at = 0; (at = after.find("grpc_server_handled_total{", at)) != std::string::npos;
       ++at) {
    const std::string line = after.substr(at, after.find('\n', at) - at);
    counted = counted || (line.find("grpc_method=\"Build\"") != std::string::npos &&
                          line.find("grpc_code=\"OK\"") != std::string::npos &&
                          line.find("} 1") != std::string::npos);
  }
  EXPECT_TRUE(counted) << after;
}

// A cgroup with a limit of memory, where the machine lets this test make one.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(int64_t bytes) {
    for (const auto& [root, file] : {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                                     std::pair("/sys/fs/cgroup", "memory.max")}) {
      const std::string folder = absl::StrCat(root, "/phimap-test-", getpid());
      if (mkdir(folder.c_str(), 0755) != 0) continue;
      folder_ = folder;
      std::ofstream limit(absl::StrCat(folder, "/", file));
      if (limit << bytes && limit.flush()) return;
      rmdir(folder.c_str());
      folder_.clear();
    }
  }
  ~MemoryCgroup() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  bool made() const { return !folder_.empty(); }
  // The beginning of a command line that runs in this cgroup.
  std::vector<std::string> Launcher() const {
    return {"/bin/sh", "-c", absl::StrCat("echo $$ > ", folder_, "/cgroup.procs && exec \"$@\""),
            "sh"};
  }

 private:
  std::string folder_;
};

TEST(LifecycleTest, LimitsOfMemoryFitIntoTheContainer) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  const MemoryCgroup cgroup(kGiB);
  if (!cgroup.made()) GTEST_SKIP() << "this machine lets the test make no cgroup";
  TemporaryFolder folder;
  {
    ServerProcess fitting(folder.path(), {}, cgroup.Launcher());
    EXPECT_THAT(fitting.process().ErrorsSoFar(), HasSubstr("cgroup_memory_bytes=1073741824"));
    EXPECT_THAT(fitting.process().ErrorsSoFar(), Not(HasSubstr("max_live_bytes=4294967296")));
    EXPECT_THAT(fitting.process().ErrorsSoFar(), Not(HasSubstr("memory_beyond_cgroup")));
    fitting.process().Signal(SIGTERM);
    EXPECT_EQ(fitting.process().Wait().exit_code, 0);
  }
  ServerProcess given(folder.path(), {"--max_live_bytes=2147483648"}, cgroup.Launcher());
  // 64 MiB + 1.25·2 GiB, and the minimum of the other parts: 16 MiB, 16 MiB, 16·0.5 MiB
  EXPECT_THAT(given.process().ErrorsSoFar(),
              AllOf(HasSubstr("memory_beyond_cgroup worst_case_bytes=2793406464"),
                    HasSubstr("cgroup_memory_bytes=1073741824"), HasSubstr("--max_live_bytes")));
  given.process().Signal(SIGTERM);
  EXPECT_EQ(given.process().Wait().exit_code, 0);
}

}  // namespace
}  // namespace phimap::e2e
