// Converts v1.MappingSpec to MappingSpec. Contains no list of mappings or parameters: it matches
// the message's fields by name with the core's tables.
#ifndef PHIMAP_SERVER_MAPPING_MAPPING_SPEC_FROM_PROTO_H_
#define PHIMAP_SERVER_MAPPING_MAPPING_SPEC_FROM_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/mapping/spec/mapping_spec.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap {

// Returns a spec that passes Validate(). INVALID_ARGUMENT names the field, without a prefix
// ("landmarks"). FIELD_INVALID means that an enum has an unknown value, or that `text` came with
// other fields.
absl::StatusOr<MappingSpec> MappingSpecFromProto(const v1::MappingSpec& fields);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_MAPPING_SPEC_FROM_PROTO_H_
