// The first message of a Build → BuildSpec, checked.
#ifndef PHIMAP_SERVER_MAPPING_BUILD_SPEC_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_BUILD_SPEC_FROM_PROTO_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/mapping/spec/build_spec.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_job.h"

namespace phimap {

// Name and UUID; the UUID in lower case, so that two spellings are one build. INVALID_ARGUMENT
// names "mapping" or "build_id" with `prefix` before it.
absl::StatusOr<BuildId> BuildIdFromProto(absl::string_view mapping, absl::string_view build_id,
                                         absl::string_view prefix);

// A spec that passes Validate(). Errors name their field from the request's root on
// ("spec.spec.landmarks", "spec.kernel"): INVALID_ARGUMENT, UNIMPLEMENTED for parts of the API that
// this server lacks.
absl::StatusOr<BuildSpec> BuildSpecFromProto(const v1::BuildSpec& spec);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_BUILD_SPEC_FROM_PROTO_H_
