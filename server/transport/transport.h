// The server's sockets: listeners, event loops and the connections on them.
//
// Example:
//   Transport transport(options, acceptor, metrics, logger);
//   transport.Listen(std::move(endpoints));
//   …
//   transport.StopListening();
//   transport.BeginGoAway();   // calls are served on
//   transport.FinishGoAway();  // no new ones
//   if (!transport.AwaitEnd(deadline)) transport.CloseAll();
//
// Thread-safety: all methods may be called from any thread but those of the loops.
#ifndef PHIMAP_SERVER_TRANSPORT_TRANSPORT_H_
#define PHIMAP_SERVER_TRANSPORT_TRANSPORT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/observe/connection_metrics.h"
#include "server/observe/log.h"
#include "server/transport/connection.h"
#include "server/transport/event_loop.h"
#include "server/transport/listening_socket.h"
#include "server/transport/stream.h"
#include "server/transport/tls_context.h"

namespace phimap {

class Transport {
 public:
  struct Options {
    // Event loops, each a thread; connections are spread over them.
    int io_threads = 1;
    ConnectionLimits limits;
    int max_descriptor = 1 << 20;
    // Connections from one address; more are closed at once. Unix sockets are not counted, nor are
    // the addresses of proxies.
    int max_connections_per_host = 1 << 20;
    std::vector<std::string> proxies = {};
  };
  struct Endpoint {
    ListeningSocket socket;
    // Null: in the clear. Outlives the transport.
    TlsContext* tls = nullptr;
  };

  // `acceptor`, `metrics` and `logger` outlive the transport. The loops run when this returns.
  Transport(const Options& options, StreamAcceptor& acceptor, const ConnectionMetrics& metrics,
            const Logger& logger);
  // Ends all connections, and the loops.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int loops() const;
  EventLoop& loop(int i);

  void Listen(std::vector<Endpoint> endpoints);
  // Closes the listeners: later connections are refused.
  void StopListening();
  // Tells clients that their connections will end soon; calls that they begin are still taken.
  void BeginGoAway();
  // Takes no call from now on: a client that tries learns that it was not begun.
  void FinishGoAway();
  // Waits until no connection is left, at most until `deadline`; false: some are.
  bool AwaitEnd(std::chrono::steady_clock::time_point deadline);
  // Ends all connections with all their calls.
  void CloseAll();

 private:
  class IoThread;

  // Runs `task` on each loop's thread and waits for all.
  void OnEachLoop(const std::function<void(IoThread&)>& task);

  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_TRANSPORT_H_
