// Table of all mappings.
#ifndef PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_
#define PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/mapping/spec/mapping.h"

namespace phimap {

// Returns all mappings, in the order in which messages and listings name them.
absl::Span<const Mapping* const> Mappings();
// Returns the mapping with this name or long name, or null if there is none.
const Mapping* FindMapping(absl::string_view name);
// Returns the mapping of a default-constructed MappingSpec.
const Mapping& DefaultMapping();
// Returns "f1, f2 or f3": the mappings that have this parameter, or all mappings if `parameter` is
// empty.
std::string ListOfMappings(absl::string_view parameter = "");

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_
