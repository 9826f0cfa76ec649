// Converts the first message of a Build call into a validated BuildSpec. Contains no list of
// mappings or parameters: it matches the message's fields by name with the core's tables.
#ifndef PHIMAP_SERVER_MAPPING_BUILD_SPEC_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_BUILD_SPEC_FROM_PROTO_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mapping/spec/build_spec.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

// Returns a spec that passes Validate(). Errors give the path of their field, beginning at the root
// of the request ("spec.spec.landmarks", "spec.kernel"): INVALID_ARGUMENT, or UNIMPLEMENTED for
// parts of the API that this server does not support.
absl::StatusOr<BuildSpec> BuildSpecFromProto(const v1::BuildSpec& spec);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_BUILD_SPEC_FROM_PROTO_H_
