// Counts of the store's calls. Thread-safe.
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
inline constexpr int kStoreOperations = 21;

// Whether an error of the store speaks of its disk, its files or a bug; the others are answers: an
// unknown name, a lost race, an alias that points at the version.
bool IsStoreFault(const absl::Status& status);

class StoreMetrics {
 public:
  explicit StoreMetrics(prometheus::Registry& registry);
  StoreMetrics(const StoreMetrics&) = delete;
  StoreMetrics& operator=(const StoreMetrics&) = delete;

  // A call ended after `seconds`.
  void Called(StoreOperation operation, const absl::Status& status, double seconds) const;

  // Indexed by StoreOperation.
  const std::array<prometheus::Histogram*, kStoreOperations> call_seconds;
  // Faults, by canonical code.
  const std::array<prometheus::Counter*, kStatusCodes> faults;
  // Calls that wait for a thread of the store pool.
  prometheus::Gauge* const waiting;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_STORE_METRICS_H_
