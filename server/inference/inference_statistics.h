// Answer of ModelStatistics: the counts of a version in the public protocol's words.
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

// A number of events and their total duration.
struct CountedTime {
  int64_t count = 0;
  absl::Duration total;
};

// Counts of a version since it was loaded, for all protocols.
struct VersionCounts {
  std::string mapping;
  int64_t number = 0;
  // Requests with an answer, from arrival to answer, and requests that ended with an error.
  CountedTime answered;
  CountedTime failed;
  // Times of requests: from arrival to their batch, and the batch.
  CountedTime queued;
  CountedTime computed;
  int64_t rows = 0;
  int64_t batches = 0;
  // Time of the last request; InfinitePast if there was none.
  absl::Time last_request = absl::InfinitePast();
  // Memory of the loaded version.
  int64_t memory_bytes = 0;
};

// Pure. Negative numbers, which no clock that is steady gives, count as 0.
inference::ModelStatistics ModelStatisticsOf(const VersionCounts& counts);

// Blocking: reads the store. Reports the counts of those requested versions that are in memory, by
// name and number. INVALID_ARGUMENT (not a name, not a version), NOT_FOUND, and errors of the
// store.
absl::Status ReadModelStatistics(Store& store, VersionRegistry& registry,
                                 const inference::ModelStatisticsRequest& request,
                                 inference::ModelStatisticsResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_STATISTICS_H_
