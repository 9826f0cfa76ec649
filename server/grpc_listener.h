// Where the API is served: gRPC's server with its limits, its addresses and its health service. The
// addresses are listened on by an Acceptor of ours, which hands gRPC the connections.
//
// Guarantees: serves when Listen returns, and every service is healthy.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_GRPC_LISTENER_H_
#define PHIMAP_SERVER_GRPC_LISTENER_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/acceptor.h"
#include "server/observe/connection_metrics.h"
#include "server/observe/log.h"
#include "server/options.h"

namespace grpc {
class Server;
class ServerBuilder;
class Service;
}  // namespace grpc

namespace phimap {

class GrpcListener {
 public:
  struct Service {
    // Outlives the listener.
    grpc::Service* service = nullptr;
    // "phimap.v1.MappingService", for health checks.
    std::string name;
  };

  // Listens on options.listen and options.unix_listen. `serving` becomes what health checks are
  // told, for protocols with a health of their own; it, `metrics` and `logger` outlive the
  // listener. FAILED_PRECONDITION when one of the addresses cannot be bound, INVALID_ARGUMENT when
  // the path of a socket is too long.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Listen(const ServerOptions& options,
                                                              std::vector<Service> services,
                                                              std::atomic<bool>& serving,
                                                              const ConnectionMetrics& metrics,
                                                              const Logger& logger);
  ~GrpcListener();
  GrpcListener(const GrpcListener&) = delete;
  GrpcListener& operator=(const GrpcListener&) = delete;

  // options.listen with the port that port 0 became.
  const std::string& address() const { return address_; }

  // Tells health checks that no service serves any longer.
  void StopHealth();
  // Accepts nothing more, waits for the calls under way and cancels them at `deadline`. Blocking.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  GrpcListener(std::string address, std::vector<Service> services, std::atomic<bool>& serving);
  void Serve(grpc::ServerBuilder& builder, std::vector<Door> doors,
             const ConnectionMetrics& metrics, const Logger& logger);
  void SetServing(bool serving);

  std::unique_ptr<grpc::Server> server_;
  // Hands connections to server_.
  std::unique_ptr<Acceptor> acceptor_;
  const std::string address_;
  const std::vector<Service> services_;
  std::atomic<bool>& serving_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_GRPC_LISTENER_H_
