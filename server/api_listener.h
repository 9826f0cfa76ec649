// The listeners of the API, their TLS, and the order in which they shut down.
//
// Guarantees: the API is served when Listen returns.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_API_LISTENER_H_
#define PHIMAP_SERVER_API_LISTENER_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/admission/file_watch.h"
#include "server/http/http_door.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/options.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/transport/tls.h"
#include "server/rpc/transport/transport.h"

namespace phimap {

class ApiListener {
 public:
  // Listens on options.listen and options.unix_listen for `dispatcher`, and on options.api_http for
  // an HttpDoor to it. Calls `add_loop` for each event loop before anything is served. All
  // arguments but `options` and `add_loop` must outlive the listener. Returns FAILED_PRECONDITION
  // if an address cannot be bound or a TLS file cannot be used, and INVALID_ARGUMENT if the path of
  // a socket is too long.
  static absl::StatusOr<std::unique_ptr<ApiListener>> Listen(
      const ServerOptions& options, Dispatcher& dispatcher,
      const std::function<void(EventLoop&)>& add_loop, const ConnectionMetrics& metrics,
      const Logger& logger);
  ~ApiListener();
  ApiListener(const ApiListener&) = delete;
  ApiListener& operator=(const ApiListener&) = delete;

  // Returns options.listen, with port 0 replaced by the actual port.
  const std::string& address() const { return address_; }
  // Returns options.api_http, likewise.
  const std::string& http_address() const { return http_address_; }

  // Changes options.max_connections and options.max_connections_per_host. Open connections stay.
  void SetMaxConnections(int max_connections, int max_connections_per_host) {
    transport_.SetMaxConnections(max_connections, max_connections_per_host);
  }

  // Closes the listeners, asks clients to open new connections elsewhere (GOAWAY), and keeps
  // serving until `lame_duck`. Then calls `lame_duck_over`, rejects new calls, and waits for the
  // calls in progress, except those whose client is silent. Ends the remaining calls at `deadline`.
  // Unfinished calls end with UNAVAILABLE (SERVER_SHUTTING_DOWN), never CANCELLED. Blocking.
  void Shutdown(std::chrono::steady_clock::time_point lame_duck,
                std::chrono::steady_clock::time_point deadline,
                const std::function<void()>& lame_duck_over);

  // When the first revocation list of --tls_client_crl ends, in seconds since 1970; infinity if
  // none does.
  double revocations_end() const { return revocations_end_.load(); }

 private:
  ApiListener(const ServerOptions& options, Dispatcher& dispatcher,
              const ConnectionMetrics& metrics, const Logger& logger);
  absl::Status OpenTls(const ServerOptions& options, const ConnectionMetrics& metrics,
                       const Logger& logger);
  void OnLoops(void (*task)());
  void NoteTls(const ServerOptions& options, const ConnectionMetrics& metrics,
               const Logger& logger);

  Dispatcher& dispatcher_;
  HttpDoor http_door_;
  std::string address_;
  std::string http_address_;
  std::atomic<double> revocations_end_{std::numeric_limits<double>::infinity()};
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<FileWatch> tls_watch_;
  Transport transport_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_API_LISTENER_H_
