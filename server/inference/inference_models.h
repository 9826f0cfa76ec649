// The answers of the calls that describe models: ModelMetadata, ModelConfig, ModelStatistics and
// RepositoryIndex. Their functions named Read… are blocking: they read the store.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_MODELS_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_MODELS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "inference/inference_service.pb.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"

namespace phimap {

// Answers ModelMetadata. Blocking: reads the store. Returns INVALID_ARGUMENT (malformed name or
// version), NOT_FOUND, and errors of the store. Leaves `properties` unset: MLServer's clients
// declare field 6 differently, and cannot read an answer that has it.
absl::Status ReadModelMetadata(Call& call, Store& store,
                               const inference::ModelMetadataRequest& request,
                               inference::ModelMetadataResponse* response);

// Returns the configuration of `version`. It agrees with ModelMetadata, except that ModelMetadata
// puts the number of rows first in each shape. Pure.
// `head` is null for a version without one.
inference::ModelConfig ModelConfigOf(const VersionRecord& version, const HeadFacts* head);

// Answers ModelConfig. Blocking: reads the store. Returns INVALID_ARGUMENT (malformed name or
// version), NOT_FOUND, and errors of the store.
absl::Status ReadModelConfig(Call& call, Store& store, const inference::ModelConfigRequest& request,
                             inference::ModelConfigResponse* response);

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
absl::Status ReadModelStatistics(Call& call, Store& store, VersionRegistry& registry,
                                 const inference::ModelStatisticsRequest& request,
                                 inference::ModelStatisticsResponse* response);

// A stored version.
struct IndexedVersion {
  std::string mapping;
  int64_t number = 0;
};

// Lists `versions` in the given order, each as READY, because its first request loads it; so a
// request for ready versions only gets the same. INVALID_ARGUMENT (PARAMETER_NOT_SUPPORTED) if the
// request names a repository. Pure.
absl::StatusOr<inference::RepositoryIndexResponse> RepositoryIndexOf(
    const inference::RepositoryIndexRequest& request, absl::Span<const IndexedVersion> versions);

// Answers RepositoryIndex. Blocking: reads all versions from the store. Returns the errors of
// RepositoryIndexOf and of the store.
absl::Status ReadRepositoryIndex(Call& call, Store& store,
                                 const inference::RepositoryIndexRequest& request,
                                 inference::RepositoryIndexResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_MODELS_H_
