// v1.MappingSpec → MappingSpec. Knows no mapping and no parameter: fields of the message are
// matched with the core's tables by their names.
#ifndef PHIMAP_SERVER_MAPPING_MAPPING_SPEC_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_MAPPING_SPEC_FROM_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/mapping/spec/mapping_spec.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// A spec that passes Validate(). INVALID_ARGUMENT names the field, without a prefix ("landmarks");
// FIELD_INVALID for a value of an enum that is unknown, and for `text` beside other fields.
absl::StatusOr<MappingSpec> MappingSpecFromProto(const v1::MappingSpec& fields);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_MAPPING_SPEC_FROM_PROTO_H_
