// The answer of RepositoryIndex: lists the stored versions in the public protocol's terms.
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

// A stored version, and the reason why it cannot be served. The reason is empty if the version can
// be served, now or once it is loaded.
struct IndexedVersion {
  std::string mapping;
  int64_t number = 0;
  std::string unavailable_because = {};
};

// Lists `versions` in the given order. If the request asks for ready versions only, omits those
// that cannot be served. INVALID_ARGUMENT (PARAMETER_NOT_SUPPORTED) if the request names a
// repository. Pure.
absl::StatusOr<inference::RepositoryIndexResponse> RepositoryIndexOf(
    const inference::RepositoryIndexRequest& request, absl::Span<const IndexedVersion> versions);

// Answers RepositoryIndex. Blocking: reads all versions from the store. Returns the errors of
// RepositoryIndexOf and of the store.
absl::Status ReadRepositoryIndex(Store& store, const inference::RepositoryIndexRequest& request,
                                 inference::RepositoryIndexResponse* response);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_REPOSITORY_H_
