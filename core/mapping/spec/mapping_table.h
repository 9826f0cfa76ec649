// All mappings.
#ifndef PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_
#define PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/mapping/spec/mapping.h"

namespace phimap {

// Returns the mappings in the order in which help lists them.
absl::Span<const Mapping* const> Mappings();
// Finds a mapping by its name or long name; null if there is none.
const Mapping* FindMapping(absl::string_view name);
// Returns the mapping that is used if a spec does not give one.
const Mapping& DefaultMapping();
// Returns the names of the mappings for which `holds` is true, such as "f1, f2 or f3". There must
// be at least one.
std::string ListOfMappings(absl::FunctionRef<bool(const Mapping&)> holds);
// Returns the names of the mappings that have the parameter, or of all mappings if `parameter` is
// empty.
std::string ListOfMappings(absl::string_view parameter = "");

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_
