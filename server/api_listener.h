// The serving addresses of the API, their TLS, and the order in which they shut down.
//
// Guarantees: serves when Listen returns.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_API_LISTENER_H_
#define PHIMAP_SERVER_API_LISTENER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/file_watch.h"
#include "server/calls/dispatcher.h"
#include "server/observe/connection_metrics.h"
#include "server/observe/log.h"
#include "server/options.h"
#include "server/transport/tls_context.h"
#include "server/transport/transport.h"

namespace phimap {

class ApiListener {
 public:
  // Listens on options.listen and options.unix_listen, for `dispatcher`; calls `add_loop` for each
  // event loop before anything is served. All but `options` outlive the listener.
  // FAILED_PRECONDITION when an address cannot be bound or a file of TLS cannot be used,
  // INVALID_ARGUMENT when the path of a socket is too long.
  static absl::StatusOr<std::unique_ptr<ApiListener>> Listen(
      const ServerOptions& options, Dispatcher& dispatcher,
      const std::function<void(EventLoop&)>& add_loop, const ConnectionMetrics& metrics,
      const Logger& logger);
  ~ApiListener();
  ApiListener(const ApiListener&) = delete;
  ApiListener& operator=(const ApiListener&) = delete;

  // options.listen with the port that port 0 became.
  const std::string& address() const { return address_; }

  // Closes the listeners, tells clients to go elsewhere and serves on until `lame_duck`; then takes
  // no call any more and waits for those under way, but not for clients that are silent; at
  // `deadline` the rest is ended. Unfinished calls end with UNAVAILABLE (SERVER_SHUTTING_DOWN),
  // never CANCELLED. `lame_duck_over` is called in between. Blocking.
  void Shutdown(std::chrono::steady_clock::time_point lame_duck,
                std::chrono::steady_clock::time_point deadline,
                const std::function<void()>& lame_duck_over);

 private:
  ApiListener(const ServerOptions& options, Dispatcher& dispatcher,
              const ConnectionMetrics& metrics, const Logger& logger);
  absl::Status OpenTls(const ServerOptions& options, const ConnectionMetrics& metrics,
                       const Logger& logger);
  void OnLoops(void (*task)());

  Dispatcher& dispatcher_;
  std::string address_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<FileWatch> tls_watch_;
  Transport transport_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_API_LISTENER_H_
