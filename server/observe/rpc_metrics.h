// Metrics of all RPCs.
//
// The names grpc_server_* are those of go-grpc-prometheus, so that existing dashboards and alerts
// work.
// Thread-safety: any thread may count; AddMethod may be called only during startup.
#ifndef PHIMAP_SERVER_OBSERVE_RPC_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_RPC_METRICS_H_

#include <array>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace phimap {

// Canonical codes are 0..16.
inline constexpr int kStatusCodes = 17;

// Returns the name of a code in go-grpc-prometheus: "OK", "InvalidArgument" …
absl::string_view CodeLabel(absl::StatusCode code);

// Returns the reasons of errors that have their own label, in lower case as in the labels. All
// other reasons have the label "other".
absl::Span<const absl::string_view> RefusalReasons();

// Counts the calls of one service that the server rejected for lack of capacity or because of its
// state, by reason.
class RefusalCounters {
 public:
  RefusalCounters(prometheus::Family<prometheus::Counter>& family, const std::string& service);
  // Counts `status` if it is RESOURCE_EXHAUSTED or UNAVAILABLE.
  void Count(const absl::Status& status) const;

 private:
  absl::flat_hash_map<std::string, prometheus::Counter*> by_reason_;
  prometheus::Counter* other_;
};

// Metrics of one RPC method.
struct MethodMetrics {
  // "phimap.v1.TransformService/Transform", for the log.
  std::string full_name;
  prometheus::Counter* started;
  std::array<prometheus::Counter*, kStatusCodes> handled;
  prometheus::Counter* messages_received;
  prometheus::Counter* messages_sent;
  prometheus::Histogram* handling_seconds;
  const RefusalCounters* refused;

  // Counts the end of a call.
  void Ended(const absl::Status& status, double seconds) const;
};

class RpcMetrics {
 public:
  explicit RpcMetrics(prometheus::Registry& registry);
  RpcMetrics(const RpcMetrics&) = delete;
  RpcMetrics& operator=(const RpcMetrics&) = delete;

  // Adds the series of one method, all at zero. `type` is unary, client_stream, server_stream or
  // bidi_stream.
  MethodMetrics AddMethod(absl::string_view service, absl::string_view method,
                          absl::string_view type);

 private:
  prometheus::Family<prometheus::Counter>& started_;
  prometheus::Family<prometheus::Counter>& handled_;
  prometheus::Family<prometheus::Counter>& messages_received_;
  prometheus::Family<prometheus::Counter>& messages_sent_;
  prometheus::Family<prometheus::Histogram>& handling_seconds_;
  prometheus::Family<prometheus::Counter>& refused_;
  // Keyed by service. MethodMetrics point into this map.
  std::map<std::string, RefusalCounters, std::less<>> refusals_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_RPC_METRICS_H_
