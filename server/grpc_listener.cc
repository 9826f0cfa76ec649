#include "server/grpc_listener.h"

#include <sys/stat.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/listen_address.h"
#include "server/tls_credentials.h"
#include "server/unix_socket.h"

namespace phimap {
namespace {

// Limits and safety of the listener itself.
void Configure(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  // A megabyte of gzip becomes a gigabyte before any limit is looked at.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // Two servers on one port would share its calls silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

void EnablePlugins() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
}

// Both ways to name a socket.
std::vector<std::string> SocketPaths(const ServerOptions& options) {
  std::vector<std::string> paths;
  if (absl::StartsWith(options.listen, kUnixScheme)) {
    paths.push_back(options.listen.substr(kUnixScheme.size()));
  }
  if (!options.unix_listen.empty()) paths.push_back(options.unix_listen);
  return paths;
}

absl::Status CannotListen(const std::string& address) {
  const char* const hint = absl::StartsWith(address, kUnixScheme)
                               ? "does its folder exist, and may this user write there?"
                               : "is the port taken, or the address not of this machine?";
  return MakeError(absl::StatusCode::kFailedPrecondition, "CANNOT_LISTEN", "listen",
                   absl::StrCat("cannot listen on ", address, "; ", hint), {{"address", address}});
}

// TLS is for the network: a Unix socket stays what it is.
std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const ServerOptions& options) {
  if (options.tls.empty() || absl::StartsWith(options.listen, kUnixScheme)) {
    return grpc::InsecureServerCredentials();
  }
  return TlsServerCredentials(options.tls);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Listen(const ServerOptions& options,
                                                                   std::vector<Service> services,
                                                                   std::atomic<bool>& serving) {
  EnablePlugins();
  grpc::ServerBuilder builder;
  Configure(options, builder);
  const std::string unix_address = absl::StrCat(kUnixScheme, options.unix_listen);
  int port = 0;
  builder.AddListeningPort(options.listen, CredentialsOf(options), &port);
  if (!options.unix_listen.empty()) {
    builder.AddListeningPort(unix_address, grpc::InsecureServerCredentials());
  }
  for (const Service& service : services) builder.RegisterService(service.service);
  for (const std::string& path : SocketPaths(options)) {
    PHIMAP_RETURN_IF_ERROR(CheckSocketPath(path));
  }
  std::unique_ptr<grpc::Server> server;
  {
    const PrivateFiles sockets;
    server = builder.BuildAndStart();
  }
  if (port == 0) return CannotListen(options.listen);
  if (server == nullptr) return CannotListen(unix_address);
  for (const std::string& path : SocketPaths(options)) chmod(path.c_str(), 0600);
  auto listener = absl::WrapUnique(new GrpcListener(
      std::move(server), WithPort(options.listen, port), std::move(services), serving));
  listener->SetServing(true);
  return listener;
}

GrpcListener::GrpcListener(std::unique_ptr<grpc::Server> server, std::string address,
                           std::vector<Service> services, std::atomic<bool>& serving)
    : server_(std::move(server)),
      address_(std::move(address)),
      services_(std::move(services)),
      serving_(serving) {}

GrpcListener::~GrpcListener() = default;

void GrpcListener::StopHealth() { SetServing(false); }

void GrpcListener::Shutdown(std::chrono::system_clock::time_point deadline) {
  server_->Shutdown(deadline);
}

void GrpcListener::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = server_->GetHealthCheckService();
  for (const Service& service : services_) health->SetServingStatus(service.name, serving);
  health->SetServingStatus("", serving);
  serving_ = serving;
}

}  // namespace phimap
