// Logs which connections were ended because of a client's fault.
#ifndef PHIMAP_SERVER_TRANSPORT_BLAME_H_
#define PHIMAP_SERVER_TRANSPORT_BLAME_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observe/connection_metrics.h"
#include "server/observe/log.h"
#include "server/transport/connection.h"
#include "server/transport/peer.h"

namespace phimap {

// Counts each, and logs one every ten seconds. Not thread-safe.
class Blame {
 public:
  Blame(const ConnectionMetrics& metrics, const Logger& logger)
      : metrics_(metrics), logger_(logger) {}

  // Notes a fault of `peer`. `why` is the message that the client gets.
  void Note(const Peer& peer, ClientFault fault, absl::string_view why);

 private:
  const ConnectionMetrics& metrics_;
  const Logger& logger_;
  absl::Time quiet_until_ = absl::InfinitePast();
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_BLAME_H_
