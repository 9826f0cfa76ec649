// Counts and logs connections that were ended because of a client's fault.
#ifndef PHIMAP_SERVER_TRANSPORT_BLAME_H_
#define PHIMAP_SERVER_TRANSPORT_BLAME_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observe/connection_metrics.h"
#include "server/observe/log.h"
#include "server/transport/connection.h"
#include "server/transport/peer.h"

namespace phimap {

// Counts every connection that was ended because of the client's fault, and logs at most one of
// them every ten seconds. Not thread-safe.
class Blame {
 public:
  Blame(const ConnectionMetrics& metrics, const Logger& logger)
      : metrics_(metrics), logger_(logger) {}

  // `why`: the reason that was sent to the client.
  void Note(const Peer& peer, ClientFault fault, absl::string_view why);

 private:
  const ConnectionMetrics& metrics_;
  const Logger& logger_;
  absl::Time quiet_until_ = absl::InfinitePast();
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_BLAME_H_
