// Answer of RepositoryIndex: the stored versions in the public protocol's words.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_REPOSITORY_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_REPOSITORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "inference/inference_service.pb.h"
#include "server/store/store.h"

namespace phimap {

// A stored version, and why it cannot be served; empty: it can, now or once it is loaded.
struct IndexedVersion {
  std::string mapping;
  int64_t number = 0;
  std::string unavailable_because = {};
};

// Lists the versions in the given order, without versions that cannot be served if the request asks
// for ready ones. INVALID_ARGUMENT (PARAMETER_NOT_SUPPORTED) if it names a repository. Pure.
absl::StatusOr<inference::RepositoryIndexResponse> RepositoryIndexOf(
    const inference::RepositoryIndexRequest& request, absl::Span<const IndexedVersion> versions);

// Blocking: reads all versions of the store. Errors: those of RepositoryIndexOf and of the store.
absl::Status ReadRepositoryIndex(Store& store, const inference::RepositoryIndexRequest& request,
                                 inference::RepositoryIndexResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_REPOSITORY_H_
