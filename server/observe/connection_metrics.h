// Metrics of the connections to the API.
#ifndef PHIMAP_SERVER_OBSERVE_CONNECTION_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_CONNECTION_METRICS_H_

#include "absl/strings/string_view.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace phimap {

struct ConnectionMetrics {
  // The metrics live as long as `registry`.
  explicit ConnectionMetrics(prometheus::Registry& registry);

  prometheus::Counter* const accepted;
  // Connections closed at once because the process has too many files open.
  prometheus::Counter* const refused;
  // Connections closed at once because their address already has the maximum number.
  prometheus::Counter* const refused_by_address;
  // Connections ended because of a client's fault, by reason.
  prometheus::Counter* const ended_for_resets;
  prometheus::Counter* const ended_for_control_frames;
  prometheus::Counter* const ended_for_headers;
  prometheus::Counter* const ended_for_protocol;
  prometheus::Counter* const ended_for_other_protocol;
  prometheus::Counter* const ended_for_tls_records;
  prometheus::Counter* const ended_for_refused_calls;
  prometheus::Counter* const ended_for_no_call;
  // Requests that were not gRPC, by the status of HTTP with which they were refused.
  prometheus::Counter* const http_405;
  prometheus::Counter* const http_415;
  // Counts a failed handshake of TLS. `kind`: as in HandshakeFailure, or "queue_full".
  void HandshakeFailed(absl::string_view kind) const;
  // Connections open now.
  prometheus::Gauge* const open;
  // Longest recent time between two polls of an event loop.
  prometheus::Gauge* const longest_gap_seconds;
  // Expiry time of the server's TLS certificate in seconds since 1970; infinite without TLS.
  prometheus::Gauge* const certificate_not_after;
  // Number of times that changed files could not be used.
  prometheus::Counter* const tls_reload_failures;
  prometheus::Counter* const token_reload_failures;

 private:
  ConnectionMetrics(prometheus::Registry& registry,
                    prometheus::Family<prometheus::Counter>& reload_failures,
                    prometheus::Family<prometheus::Counter>& ended,
                    prometheus::Family<prometheus::Counter>& http_refused);

  prometheus::Family<prometheus::Counter>* const handshakes_failed_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_CONNECTION_METRICS_H_
