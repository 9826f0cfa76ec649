// Accepts connections on one socket and passes them on.
//
// Guarantees: some of the process's file descriptors are reserved for the store and for everything
// else that is not a connection. A connection that would need a reserved descriptor, or that
// exceeds the maximum of its address, is closed at once, so that the client notices and may retry.
// Accepting continues after any error of accept(). Not thread-safe: used on the loop's thread only.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_LISTENER_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_LISTENER_H_

#include <sys/socket.h>

#include <functional>
#include <memory>

#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/rpc/transport/channel.h"
#include "server/rpc/transport/event_loop.h"
#include "server/rpc/transport/host_counts.h"
#include "server/rpc/transport/listening_socket.h"
#include "server/rpc/transport/peer.h"
#include "server/rpc/transport/tls.h"

namespace phimap {

class Listener final : public Pollable {
 public:
  // Takes ownership of a connection, and must call Options::hosts.Return with its peer when the
  // connection ends.
  using Take = std::function<void(std::unique_ptr<Channel>, Peer)>;
  struct Options {
    // Connections must have descriptors below this number. The rest is reserved for the process.
    int max_descriptor;
    // Counts of connections, shared by all listeners; must outlive them.
    HostCounts& hosts;
    const ConnectionMetrics& metrics;
    const Logger& logger;
    // Called when a client connects although nearly all connections are taken.
    std::function<void()> make_room;
  };

  // `tls` may be null (no TLS), and must outlive the listener. `http1`: clients may speak HTTP/1.1.
  Listener(EventLoop& loop, ListeningSocket socket, TlsContext* tls, bool http1,
           const Options& options, Take take);
  ~Listener() override;

  void OnReady(uint32_t events) override;
  void OnOutOfMemory() override { Pause(); }

 private:
  struct RetryTimer final : Timer {
    explicit RetryTimer(Listener& listener) : listener(listener) {}
    void OnTime() override { listener.Listen(); }
    Listener& listener;
  };
  void Listen();
  // Stops accepting for 100 ms. After an error the socket stays readable, so without a pause the
  // loop would spin.
  void Pause();
  // Passes an accepted connection on, or closes it.
  void Accepted(int connection, const sockaddr_storage& name);
  // Whether the connection may be kept. If so, it is counted in Options::hosts.
  bool Admits(int connection, const Peer& peer);
  // Returns null if there is no memory for it.
  std::unique_ptr<Channel> ChannelOf(int connection) const;
  void Warn(const char* event, const char* reason);

  EventLoop& loop_;
  ListeningSocket socket_;
  TlsContext* const tls_;
  const bool http1_;
  const Options options_;
  const Take take_;
  RetryTimer retry_;
  Seldom warns_;
  Seldom warns_of_address_;
};

// Logs that a connection of `peer` was refused because its address has as many as it may have.
void LogTooManyOfHost(const Logger& logger, const HostCounts& hosts, const Peer& peer);

// Value for Listener::Options::max_descriptor: RLIMIT_NOFILE minus a reserve for everything else.
int MaxConnectionDescriptor();

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_LISTENER_H_
