// Metrics of calls to the store. Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_STORE_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_STORE_METRICS_H_

#include <array>
#include <chrono>
#include <iterator>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/observe/rpc_metrics.h"

namespace phimap {

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_STORE_METRICS_H_
