// Metrics of calls to the store. Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_STORE_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_STORE_METRICS_H_

#include <array>

#include "absl/status/status.h"
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
inline constexpr int kStoreOperations = 22;

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_STORE_METRICS_H_
