// Measures the cost of authenticating a call: the dispatcher's work on the request headers at a
// server that requires tokens and counts the calls of each caller, minus the same work at a server
// that does neither.
//
// Not part of bench/run, because this program compares with a limit of 1 µs, not with another
// system.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/interleaved.h"
#include "core/status/check.h"
#include "server/admission/access_control.h"
#include "server/admission/caller_shares.h"
#include "server/observe/log.h"
#include "server/rpc/transport/stream.h"

namespace phimap::bench {
namespace {

constexpr double kLimitUs = 1.0;
constexpr char kMethod[] = "phimap.v1.TransformService/Transform";

// A kind of client, and the access control of the server that it calls.
struct Client {
  const char* name;
  // Value of the "authorization" header; not sent if empty.
  std::string authorization;
  const AccessControl* access;
  bool admitted = true;
};

// A folder of token files, removed by the destructor.
class TokenFolder {
 public:
  TokenFolder() { PHIMAP_CHECK(mkdtemp(path_.data()) != nullptr); }
  ~TokenFolder() { std::filesystem::remove_all(path_); }

  // Returns the access control of a server whose file has `tokens` tokens, the first being `first`.
  AccessControl Access(const std::string& first, int tokens) {
    const std::string path = absl::StrCat(path_, "/", tokens, "-", first.size());
    std::ofstream file(path);
    file << "reader " << first << "\n";
    for (int i = 1; i < tokens; ++i) file << "reader token-number-" << 1'000'000 + i << "\n";
    file.close();
    PHIMAP_CHECK(chmod(path.c_str(), 0600) == 0);
    absl::StatusOr<std::unique_ptr<TokenFile>> opened = TokenFile::Open(path, logger_);
    PHIMAP_CHECK(opened.ok());
    return AccessControl(*std::move(opened), std::nullopt);
  }

 private:
  const Logger logger_{LogLevel::kOff};
  std::string path_ = (std::filesystem::temp_directory_path() / "access_bench.XXXXXX").string();
};

// Returns the headers of a request as gRPC's C++ client sends them.
RequestHead HeadOf(const Client& client) {
  RequestHead head;
  head.Add(":method", "POST");
  head.Add(":scheme", "http");
  head.Add(":path", absl::StrCat("/", kMethod));
  head.Add(":authority", "127.0.0.1:7450");
  head.Add("content-type", "application/grpc");
  head.Add("te", "trailers");
  head.Add("user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)");
  head.Add("grpc-timeout", "10S");
  if (!client.authorization.empty()) head.Add("authorization", client.authorization);
  return head;
}

// Does what Dispatcher::OnRequest does: authenticates the caller, and counts the caller's calls in
// progress.
void Ask(const Client& client, const RequestHead& head, CallerShares& callers) {
  if (client.access->open()) return;
  Caller caller;
  caller.authorizations = static_cast<size_t>(head.Count("authorization"));
  caller.authorization = head.Find("authorization");
  const bool admitted = client.access->Admit(caller, kMethod, Role::kReader, absl::Now()).ok();
  PHIMAP_CHECK(admitted == client.admitted);
  if (admitted) PHIMAP_CHECK(callers.Take(caller.authorization).has_value());
}

int Run(int rounds, bool check) {
  const std::string token(32, 'a');
  const std::string longest(kMaxTokenBytes, 'b');
  TokenFolder folder;
  const AccessControl open(nullptr, std::nullopt);
  const AccessControl one = folder.Access(token, 1);
  const AccessControl many = folder.Access(token, kMaxTokens);
  const AccessControl long_one = folder.Access(longest, 1);
  const std::vector<Client> clients = {
      {"no authentication", "", &open},
      {"a token of 32 bytes, the only one", "Bearer " + token, &one},
      {"a token of 32 bytes, one of 10,000", "Bearer " + token, &many},
      {"a token of 256 bytes", "Bearer " + longest, &long_one},
      {"an unknown token", "Bearer " + longest, &one, /*admitted=*/false}};
  CallerShares callers(1000);
  std::vector<Contender> contenders;
  for (const Client& client : clients) {
    contenders.push_back(
        {client.name, [&client, &callers, head = HeadOf(client)] { Ask(client, head, callers); }});
  }
  TimeInterleaved({.rounds = rounds, .round_seconds = 0.05}, contenders);
  const double nobody_us = contenders[0].median_us;
  absl::PrintF("%-36s %8s\n", "client, median", "us");
  bool within = true;
  for (size_t i = 0; i < clients.size(); ++i) {
    const double us = contenders[i].median_us - nobody_us;
    absl::PrintF("%-36s %8.3f\n", clients[i].name, us);
    within &= us <= kLimitUs || !clients[i].admitted;
  }
  absl::PrintF("limit for clients that are let in %11.1f\n", kLimitUs);
  return check && !within ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) {
  CLI::App app("Measures the cost of authenticating a call.");
  int rounds = 15;
  bool check = false;
  app.add_option("--rounds", rounds, "Rounds; every kind of client is timed in each")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_flag("--check", check, "Exit with 1 if the limit is exceeded");
  CLI11_PARSE(app, argc, argv);
  return phimap::bench::Run(rounds, check);
}
