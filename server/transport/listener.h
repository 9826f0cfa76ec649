// Accepts connections on one socket and hands them over.
//
// Guarantees: some of the process's descriptors are kept for the store and everything else; a
// connection beyond that is closed at once, so that the client notices and may try again, as is one
// of an address that has its maximum; and accepting continues after any error of accept. Not
// thread-safe: it lives on its loop's thread.
#ifndef PHIMAP_SERVER_TRANSPORT_LISTENER_H_
#define PHIMAP_SERVER_TRANSPORT_LISTENER_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/observe/connection_metrics.h"
#include "server/observe/log.h"
#include "server/transport/channel.h"
#include "server/transport/event_loop.h"
#include "server/transport/host_counts.h"
#include "server/transport/listening_socket.h"
#include "server/transport/peer.h"
#include "server/transport/tls_context.h"

namespace phimap {

class Listener final : public Pollable {
 public:
  // Takes a connection over; its end returns its address to Options::hosts.
  using Take = std::function<void(std::unique_ptr<Channel>, Peer)>;
  struct Options {
    // Connections get descriptors below this number, which leaves the rest for the process.
    int max_descriptor;
    // Counts of all listeners; outlives them.
    HostCounts& hosts;
    const ConnectionMetrics& metrics;
    const Logger& logger;
  };

  // `tls` may be null; it outlives the listener.
  Listener(EventLoop& loop, ListeningSocket socket, TlsContext* tls, const Options& options,
           Take take);
  ~Listener() override;

  void OnReady(uint32_t events) override;

 private:
  struct RetryTimer final : Timer {
    explicit RetryTimer(Listener& listener) : listener(listener) {}
    void OnTime() override { listener.Listen(); }
    Listener& listener;
  };
  void Listen();
  // Stops for a moment: the socket stays readable, and the loop would never rest.
  void Pause();
  // Takes a connection over, or closes it.
  void Accepted(int connection, const Peer& peer);
  // At most one line each in ten seconds: a flood that uses up the descriptors must not fill the
  // log.
  void Warn(const char* event, const char* reason);
  void WarnOfAddress(const Peer& peer);

  EventLoop& loop_;
  ListeningSocket socket_;
  TlsContext* const tls_;
  const Options options_;
  const Take take_;
  RetryTimer retry_;
  absl::Time quiet_until_ = absl::InfinitePast();
  absl::Time quiet_of_addresses_until_ = absl::InfinitePast();
};

// Highest descriptor for connections: RLIMIT_NOFILE less a reserve for everything else.
int MaxConnectionDescriptor();

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_LISTENER_H_
