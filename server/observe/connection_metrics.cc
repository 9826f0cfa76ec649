#include "server/observe/connection_metrics.h"

#include <limits>

#include "server/observe/single_series.h"

namespace phimap {

ConnectionMetrics::ConnectionMetrics(prometheus::Registry& registry)
    : ConnectionMetrics(
          registry,
          prometheus::BuildCounter()
              .Name("phimap_reload_failures_total")
              .Help("Changed TLS or token files that could not be used; the previous ones stay in "
                    "force.")
              .Register(registry),
          prometheus::BuildCounter()
              .Name("phimap_connections_ended_total")
              .Help("Connections to the API that were ended because of a fault of the client.")
              .Register(registry),
          prometheus::BuildCounter()
              .Name("phimap_http_refused_total")
              .Help("Requests to the API that were not gRPC, by the HTTP status of the answer.")
              .Register(registry)) {}

ConnectionMetrics::ConnectionMetrics(prometheus::Registry& registry,
                                     prometheus::Family<prometheus::Counter>& reload_failures,
                                     prometheus::Family<prometheus::Counter>& ended,
                                     prometheus::Family<prometheus::Counter>& http_refused)
    : accepted(OneCounter(registry, "phimap_connections_accepted_total",
                          "Connections to the API that were accepted.")),
      refused(OneCounter(
          registry, "phimap_connections_refused_total",
          "Connections to the API that were closed at once because too many were open.")),
      refused_by_address(OneCounter(
          registry, "phimap_connections_refused_by_address_total",
          "Connections to the API that were closed at once because their address had too many.")),
      ended_for_resets(&ended.Add({{"reason", "resets"}})),
      ended_for_control_frames(&ended.Add({{"reason", "control_frames"}})),
      ended_for_headers(&ended.Add({{"reason", "headers"}})),
      ended_for_protocol(&ended.Add({{"reason", "protocol"}})),
      ended_for_other_protocol(&ended.Add({{"reason", "not_http2"}})),
      ended_for_tls_records(&ended.Add({{"reason", "tls_records"}})),
      ended_for_refused_calls(&ended.Add({{"reason", "refused_calls"}})),
      ended_for_no_call(&ended.Add({{"reason", "no_call"}})),
      http_405(&http_refused.Add({{"status", "405"}})),
      http_415(&http_refused.Add({{"status", "415"}})),
      open(OneGauge(registry, "phimap_connections_open", "Open connections to the API.")),
      longest_gap_seconds(
          OneGauge(registry, "phimap_loop_longest_gap_seconds",
                   "Longest time between two polls of an event loop, in the last 15 "
                   "to 30 seconds. Between two polls, no requests are read.")),
      certificate_not_after(OneGauge(registry, "phimap_tls_certificate_not_after_seconds",
                                     "Time at which the server's TLS certificate expires, in "
                                     "seconds since 1970; +Inf without TLS.")),
      tls_reload_failures(&reload_failures.Add({{"file", "tls"}})),
      token_reload_failures(&reload_failures.Add({{"file", "tokens"}})),
      handshakes_failed_(&prometheus::BuildCounter()
                              .Name("phimap_handshakes_failed_total")
                              .Help("Handshakes of TLS that failed.")
                              .Register(registry)) {
  certificate_not_after->Set(std::numeric_limits<double>::infinity());
  for (const char* kind :
       {"not_tls", "no_certificate", "certificate", "no_http2", "other", "queue_full"}) {
    handshakes_failed_->Add({{"reason", kind}});  // so that each is shown from the start, as 0
  }
}

void ConnectionMetrics::HandshakeFailed(absl::string_view kind) const {
  handshakes_failed_->Add({{"reason", std::string(kind)}}).Increment();
}

}  // namespace phimap
