// What it costs a call to be asked who makes it: the begin of a call (RpcScope) on a server that
// asks for tokens, less that on a server that asks nobody.
//
// Timed within real calls, one after the other, each with its own context and with the caches as a
// call leaves them: gRPC sorts a call's metadata when it is asked for them first, so asking one
// call again and again would flatter. Not part of bench/run: it stands beside a limit, 1 µs, and no
// other system.
#include <sys/stat.h>

#include <atomic>
#include <chrono>
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
#include "bench/interleaved.h"
#include "core/status/check.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "phimap/v1/transform_service.grpc.pb.h"
#include "server/auth/access_control.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/rpc/rpc_method.h"
#include "server/rpc/rpc_scope.h"

namespace phimap::bench {
namespace {

constexpr double kLimitUs = 1.0;

// A kind of client, at a server of some kind.
struct Client {
  const char* name;
  // Sent as "authorization", unless it is empty.
  std::string authorization;
  const AccessControl* access;
  bool admitted = true;
  // Microseconds of each call's begin.
  std::vector<double> begins_us = {};
};

// Answers Transform with nothing, and times the begin of it for the client whose turn it is.
class TimingService final : public v1::TransformService::CallbackService {
 public:
  void set_turn(Client* client) { turn_ = client; }

  grpc::ServerUnaryReactor* Transform(grpc::CallbackServerContext* context,
                                      const v1::TransformRequest* /*request*/,
                                      v1::TransformResponse* /*response*/) override {
    Client& client = *turn_.load();
    const RpcMethod method{metrics_, Role::kReader, client.access};
    const auto begin = std::chrono::steady_clock::now();
    RpcScope scope(*context, method, logger_);
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    PHIMAP_CHECK(scope.admission().ok() == client.admitted);
    client.begins_us.push_back(taken.count());
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  Metrics registry_;
  const MethodMetrics metrics_ =
      registry_.AddMethod("phimap.v1.TransformService", "Transform", "unary");
  const Logger logger_{LogLevel::kOff};
  std::atomic<Client*> turn_{nullptr};
};

// Token files, removed at the end.
class TokenFolder {
 public:
  TokenFolder() { PHIMAP_CHECK(mkdtemp(path_.data()) != nullptr); }
  ~TokenFolder() { std::filesystem::remove_all(path_); }

  // Who may call a server whose file has `first` and further tokens.
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

// Each client calls `calls` times, in turns.
void TimeCalls(int calls, std::vector<Client>& clients) {
  TimingService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  PHIMAP_CHECK(server != nullptr);
  const auto stub = v1::TransformService::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  const v1::TransformRequest request;
  v1::TransformResponse response;
  for (int i = 0; i < calls; ++i) {
    for (Client& client : clients) {
      service.set_turn(&client);
      grpc::ClientContext context;
      if (!client.authorization.empty()) {
        context.AddMetadata("authorization", client.authorization);
      }
      PHIMAP_CHECK(stub->Transform(&context, request, &response).ok());
    }
  }
  server->Shutdown();
}

int Run(int calls, bool check) {
  const std::string token(32, 'a');
  const std::string longest(kMaxTokenBytes, 'b');
  TokenFolder folder;
  const AccessControl open(nullptr, std::nullopt);
  const AccessControl one = folder.Access(token, 1);
  const AccessControl many = folder.Access(token, kMaxTokens);
  const AccessControl long_one = folder.Access(longest, 1);
  std::vector<Client> clients = {
      {"nobody is asked", "", &open},
      {"a token of 32 bytes, the only one", "Bearer " + token, &one},
      {"a token of 32 bytes, one of 10,000", "Bearer " + token, &many},
      {"a token of 256 bytes", "Bearer " + longest, &long_one},
      {"an unknown token", "Bearer " + longest, &one, /*admitted=*/false}};
  TimeCalls(calls, clients);
  const double nobody_us = Median(clients[0].begins_us);
  absl::PrintF("%-36s %8s  %s\n", "begin of a call, median", "us", "the check");
  bool within = true;
  for (const Client& client : clients) {
    const double us = Median(client.begins_us);
    absl::PrintF("%-36s %8.3f  %9.3f\n", client.name, us, us - nobody_us);
    within &= us - nobody_us <= kLimitUs || !client.admitted;
  }
  absl::PrintF("limit, of clients that are let in %20.1f\n", kLimitUs);
  return check && !within ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) {
  CLI::App app("Measures what it costs a call to be asked who makes it.");
  int calls = 20'000;
  bool check = false;
  app.add_option("--calls", calls, "Of each kind of client")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_flag("--check", check, "Exit with 1 when the limit is passed");
  CLI11_PARSE(app, argc, argv);
  return phimap::bench::Run(calls, check);
}
