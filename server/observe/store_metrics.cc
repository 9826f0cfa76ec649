#include "server/observe/store_metrics.h"

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"
#include "core/status/error.h"
#include "prometheus/family.h"
#include "server/observe/latency_buckets.h"
#include "server/observe/single_series.h"

namespace phimap {
namespace {

// Status codes that a fault of the store may have (see IsStoreFault).
constexpr absl::StatusCode kFaultCodes[] = {
    absl::StatusCode::kUnknown,     absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kInternal,    absl::StatusCode::kFailedPrecondition,
    absl::StatusCode::kUnavailable, absl::StatusCode::kDataLoss};
// Reasons of errors that have such a code, but are not faults.
constexpr absl::string_view kAnswers[] = {"ALIAS_LIMIT_REACHED", "MAPPING_IN_USE", "VERSION_IN_USE",
                                          "VERSION_ROLLBACK_TARGET", "MAPPING_NOT_EMPTY"};

std::array<prometheus::Histogram*, kStoreOperations> CallHistograms(
    prometheus::Registry& registry) {
  auto& family = prometheus::BuildHistogram()
                     .Name("phimap_store_call_seconds")
                     .Help("Duration of a call to the store in seconds.")
                     .Register(registry);
  std::array<prometheus::Histogram*, kStoreOperations> histograms{};
  for (int i = 0; i < kStoreOperations; ++i) {
    histograms[i] = &family.Add({{"operation", kStoreOperationLabels[i]}}, LongLatencyBuckets());
  }
  return histograms;
}

std::array<prometheus::Counter*, kStatusCodes> FaultCounters(prometheus::Registry& registry) {
  auto& family =
      prometheus::BuildCounter()
          .Name("phimap_store_faults_total")
          .Help("Calls to the store that failed because of its disk, its files or a bug, by code.")
          .Register(registry);
  std::array<prometheus::Counter*, kStatusCodes> counters{};
  for (const absl::StatusCode code : kFaultCodes) {
    counters[static_cast<int>(code)] = &family.Add({{"code", std::string(CodeLabel(code))}});
  }
  return counters;
}

}  // namespace

bool IsStoreFault(const absl::Status& status) {
  if (std::find(std::begin(kFaultCodes), std::end(kFaultCodes), status.code()) ==
      std::end(kFaultCodes)) {
    return false;
  }
  const std::string reason = DetailOf(status).value_or(ErrorDetail()).reason;
  return std::find(std::begin(kAnswers), std::end(kAnswers), reason) == std::end(kAnswers);
}

StoreMetrics::StoreMetrics(prometheus::Registry& registry)
    : call_seconds(CallHistograms(registry)),
      faults(FaultCounters(registry)),
      waiting(OneGauge(registry, "phimap_store_calls_waiting",
                       "Calls waiting for a thread of the store.")) {}

void StoreMetrics::Called(StoreOperation operation, const absl::Status& status,
                          double seconds) const {
  call_seconds[static_cast<int>(operation)]->Observe(seconds);
  if (IsStoreFault(status)) faults[static_cast<int>(status.code())]->Increment();
}

}  // namespace phimap
