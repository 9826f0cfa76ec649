// Checks the ids that callers choose for their builds and changes.
#ifndef PHIMAP_SERVER_MAPPING_IDS_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_IDS_FROM_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/build/build_job.h"

namespace phimap {

// Checks the mapping's name and the UUID. Lower-cases the UUID, so that upper-case and lower-case
// spellings mean the same build. INVALID_ARGUMENT names "mapping" or "build_id", prefixed with
// `prefix`.
absl::StatusOr<BuildId> BuildIdFromProto(absl::string_view mapping, absl::string_view build_id,
                                         absl::string_view prefix);
// Returns the UUID in lower case, or "" if there is none. INVALID_ARGUMENT names "operation_id".
absl::StatusOr<std::string> OperationIdOf(absl::string_view operation_id);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_IDS_FROM_PROTO_H_
