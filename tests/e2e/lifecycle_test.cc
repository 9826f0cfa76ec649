// The server as an operator sees it: start, refusals, metrics, stop.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"

namespace phimap::e2e {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<v1::Version> BuildSmall(client::Client& client, const std::string& name) {
  GeneratedRows rows(200, 4, 3);
  return client.Build(
      {.mapping = name, .mapping_text = "f2(landmarks=20)", .kernel_text = "rbf(gamma=scale)"},
      rows);
}

TEST(LifecycleTest, StopsWithZeroOnSigtermAndServesTheSameVersionsAgain) {
  TemporaryFolder folder;
  std::string digest;
  {
    ServerProcess server(folder.path());
    const auto version = BuildSmall(*server.Connect(), "letters");
    ASSERT_TRUE(version.ok()) << version.status();
    digest = version->ref().digest();
    server.process().Signal(SIGTERM);
    EXPECT_EQ(server.process().Wait().exit_code, 0);
  }
  ServerProcess server(folder.path());
  const auto version = server.Connect()->GetVersion("letters@1");
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version->ref().digest(), digest);
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
  const mode_t before = umask(022);  // the server's too
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
  EXPECT_THAT(
      server.ReadLine(),
      ::testing::MatchesRegex("phimapd ready: grpc=127.0.0.1:[0-9]+ http=none unix=" + path));
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

}  // namespace
}  // namespace phimap::e2e
