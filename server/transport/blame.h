// Counts and logs connections that were ended, or never began, because of a client's fault.
#ifndef PHIMAP_SERVER_TRANSPORT_BLAME_H_
#define PHIMAP_SERVER_TRANSPORT_BLAME_H_

#include "absl/strings/string_view.h"
#include "server/observe/connection_metrics.h"
#include "server/observe/log.h"
#include "server/observe/seldom.h"
#include "server/transport/connection.h"
#include "server/transport/peer.h"

namespace phimap {

// Counts every such connection, and logs at most one of each kind every ten seconds. Not
// thread-safe.
class Blame {
 public:
  Blame(const ConnectionMetrics& metrics, const Logger& logger)
      : metrics_(metrics), logger_(logger) {}

  // `why`: the reason that was sent to the client.
  void Note(const Peer& peer, ClientFault fault, absl::string_view why);
  void NoteHandshake(const Peer& peer, const HandshakeFailure& failure);

 private:
  const ConnectionMetrics& metrics_;
  const Logger& logger_;
  Seldom logs_;
  Seldom logs_handshakes_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_BLAME_H_
