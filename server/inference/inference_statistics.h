// The answer of ModelStatistics: reports a version's counts in the public protocol's terms.
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
  // Requests that got an answer and requests that ended with an error, with the time from arrival
  // to end.
  CountedTime answered;
  CountedTime failed;
  // Time of requests from arrival to the start of their batch, and time in the batch.
  CountedTime queued;
  CountedTime computed;
  int64_t rows = 0;
  int64_t batches = 0;
  // Time of the last request; InfinitePast if there was none.
  absl::Time last_request = absl::InfinitePast();
  // Memory of the loaded version.
  int64_t memory_bytes = 0;
};

// Converts counts to the message. Negative numbers, which a steady clock never gives, count as 0.
// Pure.
inference::ModelStatistics ModelStatisticsOf(const VersionCounts& counts);

// Reports the counts of the requested versions that are in memory, ordered by name and number.
// Blocking: reads the store. Returns INVALID_ARGUMENT (malformed name or version), NOT_FOUND, and
// errors of the store.
absl::Status ReadModelStatistics(Store& store, VersionRegistry& registry,
                                 const inference::ModelStatisticsRequest& request,
                                 inference::ModelStatisticsResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_STATISTICS_H_
