// All mappings.
#ifndef PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_
#define PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/mapping/spec/mapping.h"

namespace phimap {

// In the order in which help lists them.
absl::Span<const Mapping* const> Mappings();
// By name or long name; null for an unknown one.
const Mapping* FindMapping(absl::string_view name);
// The mapping that a spec has if none is named.
const Mapping& DefaultMapping();
// "f1, f2 or f3": the mappings that `holds` is true for, of which there must be one.
std::string ListOfMappings(absl::FunctionRef<bool(const Mapping&)> holds);
// The mappings that have a parameter of this name, or all if it is empty.
std::string ListOfMappings(absl::string_view parameter = "");

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SPEC_MAPPING_TABLE_H_
