// What ModelStatistics answers: the counts of a version in the public protocol's words.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_STATISTICS_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_STATISTICS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "inference/inference_service.pb.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"

namespace phimap {

// How often something happened, and how long that took in all.
struct CountedTime {
  int64_t count = 0;
  absl::Duration total;
};

// What was counted of a version since it was loaded, whatever protocol its requests came by.
struct VersionCounts {
  std::string mapping;
  int64_t number = 0;
  // Requests that were answered, from arrival to answer, and those that ended with an error.
  CountedTime answered;
  CountedTime failed;
  // Of requests: from arrival to their batch, and the batch.
  CountedTime queued;
  CountedTime computed;
  int64_t rows = 0;
  int64_t batches = 0;
  // Of the last request; InfinitePast if there was none.
  absl::Time last_request = absl::InfinitePast();
  // What the loaded version occupies.
  int64_t memory_bytes = 0;
};

// Pure. Negative numbers, which no clock that is steady gives, count as 0.
inference::ModelStatistics ModelStatisticsOf(const VersionCounts& counts);

// Blocking: reads the store. What was counted of those versions that the request means and that
// are in memory, by name and number. INVALID_ARGUMENT (not a name, not a version), NOT_FOUND, and
// errors of the store.
absl::Status ReadModelStatistics(Store& store, VersionRegistry& registry,
                                 const inference::ModelStatisticsRequest& request,
                                 inference::ModelStatisticsResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_STATISTICS_H_
