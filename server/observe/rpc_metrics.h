// Counts of all RPCs.
//
// Names of the grpc_server_* family are those of go-grpc-prometheus, so that existing dashboards
// and alerts work. Thread-safety: counting from any thread; AddMethod while the server is being put
// together only.
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

// The name go-grpc-prometheus gives a code: "OK", "InvalidArgument" …
absl::string_view CodeLabel(absl::StatusCode code);

// The reasons of errors that have a label of their own; another one is "other". In small letters,
// as the labels are.
absl::Span<const absl::string_view> RefusalReasons();

// Calls of one service that the server refused for lack of capacity or because of its state, by
// reason.
class RefusalCounters {
 public:
  RefusalCounters(prometheus::Family<prometheus::Counter>& family, const std::string& service);
  // Counts `status` if it is a refusal: RESOURCE_EXHAUSTED or UNAVAILABLE.
  void Count(const absl::Status& status) const;

 private:
  absl::flat_hash_map<std::string, prometheus::Counter*> by_reason_;
  prometheus::Counter* other_;
};

// One RPC method.
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

  // Series of one method, all at zero. `type` is unary, client_stream, server_stream or
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
  // Keyed by service. Methods point into it.
  std::map<std::string, RefusalCounters, std::less<>> refusals_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_RPC_METRICS_H_
