// The server's metrics, looked up once and counted by pointer.
//
// Names of the grpc_server_* family are those of go-grpc-prometheus, so that existing dashboards
// and alerts work. Every series exists from the start (a rate over a series that appears with its
// first error misses that error), and no label takes its value from a request, so their number is
// fixed.
//
// Thread-safety: counting from any thread. AddMethod while the server is being put together only.
#ifndef PHIMAP_SERVER_OBSERVE_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_METRICS_H_

#include <array>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace phimap {

// Canonical codes are 0..16.
inline constexpr int kStatusCodes = 17;

// One RPC method.
struct MethodMetrics {
  // "phimap.v1.TransformService/Transform", for the log.
  std::string full_name;
  prometheus::Counter* started;
  std::array<prometheus::Counter*, kStatusCodes> handled;
  prometheus::Counter* messages_received;
  prometheus::Counter* messages_sent;
  prometheus::Histogram* handling_seconds;
};

// Why a Transform was not computed.
enum class Refusal { kQueueFull, kDeadline, kCancelled, kShutdown };
inline constexpr int kRefusals = 4;

struct TransformMetrics {
  prometheus::Counter* rows;
  prometheus::Histogram* batch_rows;
  prometheus::Histogram* queue_seconds;
  prometheus::Histogram* compute_seconds;
  // Bytes of requests and answers that are queued or being computed.
  prometheus::Gauge* queue_bytes;
  // Indexed by Refusal.
  std::array<prometheus::Counter*, kRefusals> refused;
};

struct RegistryMetrics {
  prometheus::Gauge* live_versions;
  prometheus::Gauge* live_bytes;
  prometheus::Counter* loads;
  prometheus::Counter* load_errors;
  prometheus::Counter* evictions;
};

inline constexpr int kBuildStates = 7;

struct BuildMetrics {
  // Builds that are in a state, indexed by BuildState. The last three count the builds that are
  // remembered.
  std::array<prometheus::Gauge*, kBuildStates> in_state;
  // Builds that ended, by the canonical code they ended with.
  std::array<prometheus::Counter*, kStatusCodes> ended;
  prometheus::Counter* rows;
  // From `finish` to the answer.
  prometheus::Histogram* seconds;
  prometheus::Gauge* memory_bytes;
};

class Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Series of one method, all at zero. `type` is unary, client_stream, server_stream or
  // bidi_stream.
  MethodMetrics AddMethod(absl::string_view service, absl::string_view method,
                          absl::string_view type);
  // Facts about this process that do not change: the series is 1, its labels carry them.
  void SetBuildInfo(absl::string_view version, absl::string_view blas_core,
                    absl::string_view engine_target, int compute_threads);

  const TransformMetrics& transform() const { return transform_; }
  const RegistryMetrics& registry() const { return registry_metrics_; }
  const BuildMetrics& build() const { return build_; }
  // What the HTTP endpoint serves.
  std::shared_ptr<prometheus::Registry> collectable() const { return registry_; }

 private:
  void InitRpc();
  void InitTransform();
  void InitRegistry();
  void InitBuild();

  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Family<prometheus::Counter>* started_ = nullptr;
  prometheus::Family<prometheus::Counter>* handled_ = nullptr;
  prometheus::Family<prometheus::Counter>* messages_received_ = nullptr;
  prometheus::Family<prometheus::Counter>* messages_sent_ = nullptr;
  prometheus::Family<prometheus::Histogram>* handling_seconds_ = nullptr;
  TransformMetrics transform_{};
  RegistryMetrics registry_metrics_{};
  BuildMetrics build_{};
};

// The name go-grpc-prometheus gives a code: "OK", "InvalidArgument" …
absl::string_view CodeLabel(absl::StatusCode code);

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_METRICS_H_
