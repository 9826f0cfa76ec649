#include "server/grpc_listener.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/listen_address.h"
#include "server/tls_credentials.h"
#include "server/unix_socket.h"

namespace phimap {
namespace {

using grpc::experimental::ExternalConnectionAcceptor;

// A client that says nothing, or does not end its handshake, is hung up on: it takes a descriptor.
constexpr int kHandshakeTimeoutMs = 5'000;
// One that has no call for so long, too; it connects again by itself when it has one.
constexpr int kMaxIdleMs = 30 * 60 * 1'000;
// Reflection is the one service that is synchronous, and takes a thread for every stream of it.
constexpr int kMaxSynchronousThreads = 16;

// Limits and safety of the listener itself.
void Configure(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  // A megabyte of gzip becomes a gigabyte before any limit is looked at.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  grpc::ResourceQuota quota("phimapd");
  quota.SetMaxThreads(kMaxSynchronousThreads);
  // Whoever connects, with a token or without, can have messages of theirs held while they arrive.
  quota.Resize(static_cast<size_t>(options.receive_bytes));
  builder.SetResourceQuota(quota);
}

void EnablePlugins() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
}

// A listener whose connections gRPC serves with `credentials`.
Door DoorTo(ListeningSocket socket, std::shared_ptr<ExternalConnectionAcceptor> server) {
  return {std::move(socket), [server = std::move(server)](int connection) {
            ExternalConnectionAcceptor::NewConnectionParameters parameters;
            parameters.fd = connection;
            server->HandleNewConnection(&parameters);
          }};
}

// What `credentials` are for: as many doors as there are sockets.
void AddDoors(std::vector<ListeningSocket> sockets,
              const std::shared_ptr<grpc::ServerCredentials>& credentials,
              grpc::ServerBuilder& builder, std::vector<Door>& doors) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const std::shared_ptr<ExternalConnectionAcceptor> server =
      builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials);
  for (ListeningSocket& socket : sockets) doors.push_back(DoorTo(std::move(socket), server));
}

absl::StatusOr<std::vector<ListeningSocket>> UnixSocket(const std::string& path) {
  std::vector<ListeningSocket> sockets;
  PHIMAP_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Unix(path));
  sockets.push_back(std::move(socket));
  return sockets;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Listen(const ServerOptions& options,
                                                                   std::vector<Service> services,
                                                                   std::atomic<bool>& serving,
                                                                   const ConnectionMetrics& metrics,
                                                                   const Logger& logger) {
  EnablePlugins();
  grpc::ServerBuilder builder;
  Configure(options, builder);
  std::vector<Door> doors;
  std::string address = options.listen;
  absl::string_view path = options.listen;
  if (absl::ConsumePrefix(&path, kUnixScheme)) {
    PHIMAP_ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets, UnixSocket(std::string(path)));
    AddDoors(std::move(sockets), grpc::InsecureServerCredentials(), builder, doors);
  } else {
    PHIMAP_ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets,
                            ListeningSocket::Tcp(options.listen));
    address = WithPort(options.listen, sockets[0].port());
    AddDoors(
        std::move(sockets),
        options.tls.empty() ? grpc::InsecureServerCredentials() : TlsServerCredentials(options.tls),
        builder, doors);
  }
  // TLS is for the network: a Unix socket stays what it is.
  if (!options.unix_listen.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets, UnixSocket(options.unix_listen));
    AddDoors(std::move(sockets), grpc::InsecureServerCredentials(), builder, doors);
  }
  auto listener =
      absl::WrapUnique(new GrpcListener(std::move(address), std::move(services), serving));
  listener->Serve(builder, std::move(doors), metrics, logger);
  return listener;
}

GrpcListener::GrpcListener(std::string address, std::vector<Service> services,
                           std::atomic<bool>& serving)
    : address_(std::move(address)), services_(std::move(services)), serving_(serving) {}

GrpcListener::~GrpcListener() = default;

void GrpcListener::Serve(grpc::ServerBuilder& builder, std::vector<Door> doors,
                         const ConnectionMetrics& metrics, const Logger& logger) {
  for (const Service& service : services_) builder.RegisterService(service.service);
  server_ = builder.BuildAndStart();
  PHIMAP_CHECK(server_ != nullptr);  // it binds nothing by itself
  SetServing(true);
  acceptor_ =
      std::make_unique<Acceptor>(std::move(doors), MaxConnectionDescriptor(), metrics, logger);
}

void GrpcListener::StopHealth() { SetServing(false); }

void GrpcListener::Shutdown(std::chrono::system_clock::time_point deadline) {
  acceptor_->Stop();
  server_->Shutdown(deadline);
}

void GrpcListener::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = server_->GetHealthCheckService();
  for (const Service& service : services_) health->SetServingStatus(service.name, serving);
  health->SetServingStatus("", serving);
  serving_ = serving;
}

}  // namespace phimap
