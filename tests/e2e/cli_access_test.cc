// Tests the command line and the C++ client against a server that requires credentials.
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/support/certificates.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

using testing::CertificateAuthority;
using testing::KeyPair;
using testing::ReplaceFile;

constexpr char kReader[] = "reader-token-0123456789";
constexpr char kBuilder[] = "builder-token-0123456789";

std::string Rows() {
  std::string csv = "a,b\n";
  for (int i = 0; i < 60; ++i) absl::StrAppend(&csv, i, ",", (i * 7) % 13, "\n");
  return csv;
}

class CliAccessTest : public ::testing::Test {
 protected:
  CliAccessTest() {
    const KeyPair server = authority_.Issue();
    const KeyPair client = authority_.Issue({.name = "a client"});
    ReplaceFile(Path("ca.pem"), authority_.certificate());
    ReplaceFile(Path("stranger.pem"), CertificateAuthority("a stranger").certificate());
    ReplaceFile(Path("server.pem"), server.certificate);
    ReplaceFile(Path("server.key"), server.key);
    ReplaceFile(Path("client.pem"), client.certificate);
    ReplaceFile(Path("client.key"), client.key);
    ReplaceFile(Path("tokens"), absl::StrCat("reader ", kReader, "\nbuilder ", kBuilder, "\n"));
    ReplaceFile(Path("token"), absl::StrCat(kBuilder, "\n"));
    ReplaceFile(Path("rows.csv"), Rows());
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::vector<std::string> Tls() const {
    return {"--tls_certificate=" + Path("server.pem"), "--tls_key=" + Path("server.key")};
  }
  std::vector<std::string> TlsAndTokens() const {
    std::vector<std::string> flags = Tls();
    flags.push_back("--token_file=" + Path("tokens"));
    return flags;
  }
  // Runs phimap with `environment` as its only settings for the server.
  static ProcessResult Phimap(const ServerProcess& server,
                              const std::vector<std::string>& environment,
                              const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {"/usr/bin/env"};
    for (const char* name : {"TOKEN", "TLS_CA", "TLS_CERTIFICATE", "TLS_KEY", "TLS_SERVER_NAME"}) {
      command.insert(command.end(), {"-u", absl::StrCat("PHIMAP_", name)});
    }
    command.push_back("PHIMAP_SERVER=" + server.address());
    command.insert(command.end(), environment.begin(), environment.end());
    command.push_back(PHIMAP_BINARY);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProcess(command);
  }

  TemporaryFolder folder_;
  CertificateAuthority authority_{"phimap test authority"};
};

TEST_F(CliAccessTest, EveryCommandCallsWithTheTokenOfTheEnvironmentOrOfAFile) {
  ServerProcess server(Path("data"), TlsAndTokens());
  const std::string ca = "PHIMAP_TLS_CA=" + Path("ca.pem");
  const std::string reader = absl::StrCat("PHIMAP_TOKEN=", kReader);
  const ProcessResult build =
      Phimap(server, {ca, reader},  // the flag wins over the environment
             {"build", "rows", "--input=" + Path("rows.csv"), "--spec=f2(landmarks=10)",
              "--kernel=rbf(gamma=1)", "--token_file=" + Path("token")});
  ASSERT_EQ(build.exit_code, 0) << build.err;
  const std::vector<std::vector<std::string>> commands = {
      {"list"},
      {"show", "rows"},
      {"verify", "rows"},
      {"transform", "rows", "--input=" + Path("rows.csv"), "--output=" + Path("features.csv")},
      {"bench", "rows", "--seconds=0.05", "--warmup=0"},
      {"health"},
  };
  for (const std::vector<std::string>& command : commands) {
    SCOPED_TRACE(command[0]);
    const ProcessResult result = Phimap(server, {ca, reader}, command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  std::vector<std::string> on_the_line = {"list", "--token", kReader};
  EXPECT_EQ(Phimap(server, {ca}, on_the_line).exit_code, 0);
}

TEST_F(CliAccessTest, ARefusalSaysWhatToDoAndNotTheToken) {
  ServerProcess server(Path("data"), TlsAndTokens());
  const std::string ca = "PHIMAP_TLS_CA=" + Path("ca.pem");
  const ProcessResult nobody = Phimap(server, {ca}, {"list"});
  EXPECT_EQ(nobody.exit_code, 5);
  EXPECT_THAT(nobody.err, HasSubstr("PHIMAP_TOKEN"));
  const ProcessResult stranger =
      Phimap(server, {ca, "PHIMAP_TOKEN=stranger-token-0123456789"}, {"list"});
  EXPECT_EQ(stranger.exit_code, 5);
  EXPECT_THAT(stranger.err, HasSubstr("does not know the token"));
  EXPECT_THAT(stranger.err, Not(HasSubstr("stranger-token")));
  const ProcessResult reader = Phimap(server, {ca, absl::StrCat("PHIMAP_TOKEN=", kReader)},
                                      {"build", "rows", "--input=" + Path("rows.csv"),
                                       "--spec=f2(landmarks=10)", "--kernel=rbf(gamma=1)"});
  EXPECT_EQ(reader.exit_code, 5);
  EXPECT_THAT(reader.err, HasSubstr("needs the role builder"));
  const ProcessResult untrusting = Phimap(server, {absl::StrCat("PHIMAP_TOKEN=", kReader)},
                                          {"list", "--tls_ca=" + Path("stranger.pem")});
  EXPECT_EQ(untrusting.exit_code, 4);
  const ProcessResult empty = Phimap(server, {ca}, {"list", "--token_file=/dev/null"});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.err, HasSubstr("--token_file: expected a token"));
}

TEST_F(CliAccessTest, AFileThatIsNotThereIsWrongUsageWhicheverFlagNamesIt) {
  ServerProcess server(Path("data"), TlsAndTokens());
  const std::string ca = "--tls_ca=" + Path("ca.pem");
  const std::vector<std::vector<std::string>> flags = {
      {"--tls_ca"}, {"--token_file"}, {"--tls_certificate", ca, "--tls_key=" + Path("client.key")}};
  for (const std::vector<std::string>& of : flags) {
    SCOPED_TRACE(of[0]);
    std::vector<std::string> command = {"list", of[0] + "=" + Path("nowhere")};
    command.insert(command.end(), of.begin() + 1, of.end());
    const ProcessResult missing = Phimap(server, {}, command);
    EXPECT_EQ(missing.exit_code, 2);
    EXPECT_THAT(missing.err, HasSubstr(of[0] + ": cannot read " + Path("nowhere")));
  }
}

TEST_F(CliAccessTest, EveryCommandThatForgetsTlsIsToldOfIt) {
  ServerProcess server(Path("data"), TlsAndTokens());
  const std::vector<std::vector<std::string>> commands = {
      {"list"},
      {"list", "--json"},
      {"show", "rows"},
      {"health"},
      {"alias", "list"},
      {"delete", "rows@1"},
      {"export", "rows", "-o", Path("rows.phimap")},
      {"transform", "rows", "--input=" + Path("rows.csv"), "--output=" + Path("features.csv")},
  };
  // Each command takes two seconds to give up, so they run at the same time.
  std::vector<ProcessResult> results(commands.size());
  std::vector<std::thread> running;
  for (size_t i = 0; i < commands.size(); ++i) {
    running.emplace_back([&, i] { results[i] = Phimap(server, {}, commands[i]); });
  }
  for (std::thread& one : running) one.join();
  for (size_t i = 0; i < commands.size(); ++i) {
    SCOPED_TRACE(absl::StrJoin(commands[i], " "));
    EXPECT_EQ(results[i].exit_code, 4);
    EXPECT_THAT(results[i].err, HasSubstr("--tls_ca=FILE, or PHIMAP_TLS_CA"));
  }
}

TEST_F(CliAccessTest, ACertificateOfTheClientLetsItIn) {
  std::vector<std::string> flags = Tls();
  flags.push_back("--tls_client_ca=" + Path("ca.pem"));
  ServerProcess server(Path("data"), flags);
  const std::string ca = "PHIMAP_TLS_CA=" + Path("ca.pem");
  EXPECT_EQ(
      Phimap(server, {ca},
             {"list", "--tls_certificate=" + Path("client.pem"), "--tls_key=" + Path("client.key")})
          .exit_code,
      0);
  EXPECT_EQ(Phimap(server, {ca}, {"list"}).exit_code, 4);
}

TEST_F(CliAccessTest, ANameCanBeGivenWhereTheCertificateDoesNotHoldForTheHost) {
  ServerProcess server(Path("data"), TlsAndTokens());
  const std::vector<std::string> environment = {"PHIMAP_TLS_CA=" + Path("ca.pem"),
                                                absl::StrCat("PHIMAP_TOKEN=", kReader)};
  EXPECT_EQ(Phimap(server, environment, {"list", "--tls_server_name=elsewhere.example"}).exit_code,
            4);
  EXPECT_EQ(Phimap(server, environment, {"list", "--tls_server_name=localhost"}).exit_code, 0);
}

}  // namespace
}  // namespace phimap::e2e
