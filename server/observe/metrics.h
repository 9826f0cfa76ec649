// The server's metrics. Each series is looked up once and then counted through a pointer.
//
// Every series exists from the start. If a series appeared only with its first error, a rate over
// the series would miss that error. Only series with a mapping's name as a label appear later.
// Their number is bounded (version_series.h, certificate_metrics.h, drift_metrics.h), and no other
// label takes its value from a request. docs/operations/watch.md lists the metrics.
//
// Thread-safety: any thread may count. AddMethod, SetBuildInfo, SetLimits and Watch… may be called
// only during startup.
#ifndef PHIMAP_SERVER_OBSERVE_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_METRICS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "prometheus/collectable.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/observe/caller_series.h"
#include "server/observe/certificate_metrics.h"
#include "server/observe/drift_metrics.h"
#include "server/observe/log.h"
#include "server/observe/version_series.h"

namespace phimap {

// Metrics of all RPCs.
//
// The names grpc_server_* are those of go-grpc-prometheus, so that existing dashboards and alerts
// work.
// Thread-safety: any thread may count; AddMethod may be called only during startup.
//
// Canonical codes are 0..16.
inline constexpr int kStatusCodes = 17;

// Returns the name of a code in go-grpc-prometheus: "OK", "InvalidArgument" …
absl::string_view CodeLabel(absl::StatusCode code);

// Returns the reasons of errors that have their own label, which is the reason in lower case. All
// other reasons have the label "other".
absl::Span<const absl::string_view> RefusalReasons();

// Counts the calls of one service that the server rejected for lack of capacity or because of its
// state, by reason. Such calls end with RESOURCE_EXHAUSTED or UNAVAILABLE, or, if the store cannot
// be written, with FAILED_PRECONDITION.
class RefusalCounters {
 public:
  RefusalCounters(prometheus::Family<prometheus::Counter>& family, const std::string& service);
  // Counts `status` if it is such a rejection.
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

// Counts of requests for features, for all protocols.
//
// A request passes through four phases:
//   parse    from when the message is complete to when the scheduler has the work. Includes the
//            checks, the lookup of the reference, and the load of a version that is not live.
//   queue    the wait for a thread
//   compute  the computation of the features
//   answer   from the allocation of the answer, just before the features are computed, until the
//            answer is sent
// Thread-safe.
//
// Reason for which accepted work was not computed.
enum class Drop { kDeadline, kCancelled };
inline constexpr int kDrops = 2;

class TransformMetrics {
 public:
  explicit TransformMetrics(prometheus::Registry& registry);
  TransformMetrics(const TransformMetrics&) = delete;
  TransformMetrics& operator=(const TransformMetrics&) = delete;

  // Records a batch of the engine: `requests` requests that have `rows` rows together.
  void BatchComputed(int64_t requests, int64_t rows) const;
  // Records one request of the batch, which got its features.
  void RequestComputed(int64_t rows, double batch_seconds) const;

  prometheus::Counter* const rows;
  prometheus::Histogram* const batch_rows;
  prometheus::Histogram* const batch_requests;
  prometheus::Histogram* const parse_seconds;
  prometheus::Histogram* const queue_seconds;
  prometheus::Histogram* const compute_seconds;
  prometheus::Histogram* const answer_seconds;
  // Bytes that are charged for requests and answers, from before they arrive until they are sent.
  prometheus::Gauge* const memory_bytes;
  // Requests that were computed on the event loop that read them.
  prometheus::Counter* const inline_requests;
  prometheus::Counter* const pool_busy_seconds;
  // Indexed by Drop.
  const std::array<prometheus::Counter*, kDrops> dropped;
};

// Metrics of the connections to the API.
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
  prometheus::Counter* const ended_for_proxy_header;
  prometheus::Counter* const ended_for_certificate;
  // Requests that were not gRPC, by the status of HTTP with which they were refused.
  prometheus::Counter* const http_405;
  prometheus::Counter* const http_415;
  // Counts a failed handshake of TLS. `kind`: as in HandshakeFailure, or "queue_full".
  void HandshakeFailed(absl::string_view kind) const;
  // Connections open now.
  prometheus::Gauge* const open;
  // Expiry time of the server's TLS certificate in seconds since 1970; infinite without TLS.
  prometheus::Gauge* const certificate_not_after;
  // Number of times that changed files could not be used.
  prometheus::Counter* const tls_reload_failures;
  prometheus::Counter* const token_reload_failures;
  prometheus::Counter* const config_reload_failures;

 private:
  ConnectionMetrics(prometheus::Registry& registry,
                    prometheus::Family<prometheus::Counter>& reload_failures,
                    prometheus::Family<prometheus::Counter>& ended,
                    prometheus::Family<prometheus::Counter>& http_refused);

  prometheus::Family<prometheus::Counter>* const handshakes_failed_;
};

// Metrics of builds. Thread-safe.
inline constexpr int kBuildStates = 7;
inline constexpr int kBuildPhases = 11;

class BuildMetrics {
 public:
  explicit BuildMetrics(prometheus::Registry& registry);
  BuildMetrics(const BuildMetrics&) = delete;
  BuildMetrics& operator=(const BuildMetrics&) = delete;

  // Records that a build spent `seconds` in `phase`. A phase is "receive", "queue", "publish", or
  // one of the phases that BuildVersion (core/mapping/build/version_build.h) reports. Ignores any
  // other phase.
  void PhaseEnded(absl::string_view phase, double seconds) const;
  // For tests. Returns null for a phase that is not counted.
  prometheus::Histogram* PhaseSeconds(absl::string_view phase) const;

  // Returns the counter of builds that end so: by code, and apart from these the builds that had no
  // more room in their caller's share of the store, which is no fault of the server.
  prometheus::Counter& Ended(const absl::Status& end) const;

  // Number of builds in each state, indexed by BuildState. The last three states count only builds
  // that are still in memory.
  const std::array<prometheus::Gauge*, kBuildStates> in_state;
  prometheus::Counter* const rows;
  // Seconds from the start of computing to the stored version.
  prometheus::Histogram* const seconds;
  prometheus::Gauge* const memory_bytes;

 private:
  BuildMetrics(prometheus::Registry& registry, prometheus::Family<prometheus::Counter>& ended);

  const std::array<prometheus::Counter*, kStatusCodes> ended_;
  prometheus::Counter* const ended_at_share_;
  const std::array<prometheus::Histogram*, kBuildPhases> phase_seconds_;
};

// Metrics of calls to the store. Thread-safe.
//
// The methods of Store (server/store/store.h), in their order.
enum class StoreOperation {
  kPublish,
  kImport,
  kRecordFailedBuild,
  kGetBuild,
  kChangesSince,
  kIsInHistory,
  kGetMapping,
  kListMappings,
  kGetVersion,
  kListVersions,
  kGetAliasedVersion,
  kGetVersionByDigest,
  kReadArtifact,
  kReadArtifactRange,
  kOpenArtifact,
  kSetAlias,
  kDeleteAlias,
  kDeleteVersion,
  kDeleteMapping,
  kKeepVersion,
  kRecordUses,
  kDeleteExpired,
};
// Labels of the operations, in their order.
inline constexpr const char* kStoreOperationLabels[] = {
    "publish",
    "import",
    "record_failed_build",
    "get_build",
    "changes_since",
    "is_in_history",
    "get_mapping",
    "list_mappings",
    "get_version",
    "list_versions",
    "get_aliased_version",
    "get_version_by_digest",
    "read_artifact",
    "read_artifact_range",
    "open_artifact",
    "set_alias",
    "delete_alias",
    "delete_version",
    "delete_mapping",
    "keep_version",
    "record_uses",
    "delete_expired",
};
inline constexpr int kStoreOperations = static_cast<int>(std::size(kStoreOperationLabels));

// Returns whether an error of the store is a fault: a problem of its disk, files or database, or a
// bug. All other errors are regular answers, for example: an unknown name, a lost race, or an alias
// that still points to the version.
bool IsStoreFault(const absl::Status& status);

class StoreMetrics {
 public:
  explicit StoreMetrics(prometheus::Registry& registry);
  StoreMetrics(const StoreMetrics&) = delete;
  StoreMetrics& operator=(const StoreMetrics&) = delete;

  // Records that a call ended after `seconds`.
  void Called(StoreOperation operation, const absl::Status& status, double seconds) const;

  // Indexed by StoreOperation.
  const std::array<prometheus::Histogram*, kStoreOperations> call_seconds;
  // Number of faults, by canonical code. Null for codes that faults do not have.
  const std::array<prometheus::Counter*, kStatusCodes> faults;
  // Number of calls that wait for a thread of the store pool.
  prometheus::Gauge* const waiting;
};

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Returns what `call` returns, a Status or a StatusOr, and records the call in `metrics`, unless
// that is null.
template <typename Call>
auto Metered(const StoreMetrics* metrics, StoreOperation operation, const Call& call) {
  const auto started = std::chrono::steady_clock::now();
  auto result = call();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
  if (metrics != nullptr) metrics->Called(operation, StatusOf(result), taken.count());
  return result;
}

// Metrics of calls to kernel services. Thread-safe except for AddService, which is for startup.
//
// Metrics of one service on the operator's list.
struct KernelServiceMetrics {
  // Number of completed calls by the status that the caller got.
  std::array<prometheus::Counter*, kStatusCodes> ended;
  prometheus::Histogram* seconds;
  prometheus::Gauge* under_way;
  prometheus::Counter* values;
  // Number of times that a block's columns were sent with their content.
  prometheus::Counter* examples_sent;
};

class KernelMetrics {
 public:
  explicit KernelMetrics(prometheus::Registry& registry);

  KernelServiceMetrics AddService(absl::string_view name);

 private:
  prometheus::Family<prometheus::Counter>& ended_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Gauge>& under_way_;
  prometheus::Family<prometheus::Counter>& values_;
  prometheus::Family<prometheus::Counter>& examples_sent_;
};

// Metrics of the versions in memory. Thread-safe.
class RegistryMetrics {
 public:
  explicit RegistryMetrics(prometheus::Registry& registry);
  RegistryMetrics(const RegistryMetrics&) = delete;
  RegistryMetrics& operator=(const RegistryMetrics&) = delete;

  prometheus::Gauge* const live_versions;
  prometheus::Gauge* const live_bytes;
  prometheus::Counter* const loads;
  prometheus::Counter* const load_errors;
  prometheus::Histogram* const load_seconds;
  // Number of loads that wait for the loader thread.
  prometheus::Gauge* const loads_waiting;
  prometheus::Counter* const evictions;
  // Number of versions that aliases point to, by state: in memory, waiting to be loaded in the
  // background, and neither of the two.
  prometheus::Gauge* const alias_versions_warm;
  prometheus::Gauge* const alias_versions_loading;
  prometheus::Gauge* const alias_versions_failed;
  // Number of failed requests to the catalog for other servers' changes.
  prometheus::Counter* const catalog_errors;
  const std::unique_ptr<VersionSeries> versions;
};

// Limits of the server, shown next to its usage.
struct ResourceLimits {
  int compute_threads = 0;
  int64_t memory_bytes = 0;
  int64_t live_bytes = 0;
  int64_t build_memory_bytes = 0;
  int builds = 0;
};

// Counts of the spans of traces (server/trace): each that ended is sent or dropped in the end.
struct TraceMetrics {
  // The metrics live as long as `registry`.
  explicit TraceMetrics(prometheus::Registry& registry);

  prometheus::Counter* const sent;
  // The queue was full, or the server was ending.
  prometheus::Counter* const dropped_queue_full;
  // The collector was away for too long.
  prometheus::Counter* const dropped_undelivered;
  // The collector refused them.
  prometheus::Counter* const dropped_rejected;
  prometheus::Counter* const dropped_no_memory;
  // Requests to the collector that failed and may be sent again.
  prometheus::Counter* const failures;

 private:
  TraceMetrics(prometheus::Registry& registry, prometheus::Family<prometheus::Counter>& dropped);
};

class Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // See RpcMetrics::AddMethod.
  MethodMetrics AddMethod(absl::string_view service, absl::string_view method,
                          absl::string_view type) {
    return rpc_.AddMethod(service, method, type);
  }
  // Shows constant facts about this process as labels of a series whose value is 1.
  void SetBuildInfo(absl::string_view version, absl::string_view blas_core,
                    absl::string_view engine_target);
  void SetLimits(const ResourceLimits& limits);
  // Shows how full the file system of `folder` is. `whose`: see DiskMetrics.
  void WatchDisk(const std::string& whose, const std::string& folder);
  // Shows the result of `read`, which is called at each scrape and must not block.
  void WatchGauge(std::string name, std::string help, std::function<double()> read);
  void WatchCounter(std::string name, std::string help, std::function<double()> read);
  // Like WatchGauge, for a gauge with one label, whose value is read too. While `read` returns
  // nullopt, there is no series.
  struct Labeled {
    std::string label;
    double value = 0;
  };
  void WatchLabeledGauge(std::string name, std::string help, std::string label,
                         std::function<std::optional<Labeled>()> read);
  // Shows the number of lines that `logger` dropped. `logger` must outlive the metrics.
  void WatchLog(const Logger& logger);

  const TransformMetrics& transform() const { return transform_; }
  const RegistryMetrics& registry() const { return registry_metrics_; }
  const BuildMetrics& build() const { return build_; }
  const StoreMetrics& store() const { return store_; }
  CertificateMetrics& certificates() { return certificates_; }
  DriftMetrics& drift() { return drift_; }
  const ConnectionMetrics& connections() const { return connections_; }
  KernelMetrics& kernels() { return kernels_; }
  CallerSeries& callers() { return callers_; }
  const TraceMetrics& traces() const { return traces_; }
  // Returns everything that the HTTP endpoint serves: these metrics and those of the process.
  std::shared_ptr<const prometheus::Collectable> collectable() const;

 private:
  class Sources;

  const std::shared_ptr<prometheus::Registry> registry_;
  const std::shared_ptr<Sources> sources_;
  RpcMetrics rpc_;
  const TransformMetrics transform_;
  const RegistryMetrics registry_metrics_;
  const BuildMetrics build_;
  const StoreMetrics store_;
  CertificateMetrics certificates_;
  DriftMetrics drift_;
  const ConnectionMetrics connections_;
  KernelMetrics kernels_;
  CallerSeries callers_;
  const TraceMetrics traces_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_METRICS_H_
