// The server's sockets: listeners, event loops and the connections on them.
//
// Example:
//   Transport transport(options, acceptor, metrics, logger);
//   transport.Listen(std::move(endpoints));
//   …
//   transport.StopListening();
//   transport.BeginGoAway();   // new calls are still accepted
//   transport.FinishGoAway();  // no new calls
//   if (!transport.AwaitEnd(deadline)) transport.CloseAll();
//
// Thread-safety: all methods may be called from any thread except the threads of the event loops.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_TRANSPORT_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_TRANSPORT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/rpc/transport/connection.h"
#include "server/rpc/transport/event_loop.h"
#include "server/rpc/transport/listening_socket.h"
#include "server/rpc/transport/stream.h"
#include "server/rpc/transport/tls.h"

namespace phimap {

class Transport {
 public:
  struct Options {
    // Number of event loops, each on its own thread. Connections are spread over the loops.
    int io_threads = 1;
    ConnectionLimits limits;
    int max_descriptor = 1 << 20;
    // Maximum connections. Further connections are closed at once.
    int max_connections = 1 << 20;
    // Maximum connections per client address. Further connections are closed at once. Connections
    // over Unix sockets and from the addresses in `proxies` are not counted.
    int max_connections_per_host = 1 << 20;
    std::vector<std::string> proxies = {};
    // Proxies whose connections begin with a header of the PROXY protocol (proxy_header.h); the
    // client that it names is then the connection's peer. "unix" stands for all Unix sockets.
    std::vector<std::string> header_proxies = {};
    // If not 0: the oldest connection of a loop is ended for the next once there are so many, so
    // that nobody is kept out.
    size_t connections_that_stay = 0;
    // Maximum steps of TLS handshakes that wait for their thread; 0 if no endpoint has TLS.
    int max_queued_handshakes = 1024;
  };
  struct Endpoint {
    ListeningSocket socket;
    // If null, TLS is not used. Must outlive the transport.
    TlsContext* tls = nullptr;
    // Where requests of this endpoint go, if not to the transport's acceptor.
    Door door = {};
  };

  // Starts the loops. `acceptor`, `metrics` and `logger` must outlive the transport.
  Transport(const Options& options, StreamAcceptor& acceptor, const ConnectionMetrics& metrics,
            const Logger& logger);
  // Ends all connections and the loops.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int loops() const;
  EventLoop& loop(int i);

  void Listen(std::vector<Endpoint> endpoints);
  // Changes Options::max_connections and max_connections_per_host. Open connections stay.
  void SetMaxConnections(int max_connections, int max_connections_per_host);
  // Closes the listeners: later connections are refused.
  void StopListening();
  // Tells clients that their connections will end soon. New calls are still accepted.
  void BeginGoAway();
  // Accepts no call from now on. A client that still starts a call learns that the call was not
  // processed.
  void FinishGoAway();
  // Waits until no connection is left, at most until `deadline`. Returns whether none is left.
  bool AwaitEnd(std::chrono::steady_clock::time_point deadline);
  // Ends all connections with all their calls, and waits until they are gone.
  void CloseAll();

 private:
  class IoThread;

  // Ends strangers' connections that have had their time, now and then. Called on the first loop's
  // thread.
  void MakeRoom();
  // Runs `task` on each loop's thread and waits until it has run on all.
  void OnEachLoop(const std::function<void(IoThread&)>& task);

  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_TRANSPORT_H_
