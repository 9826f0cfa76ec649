// The statement that a certificate names.
#ifndef PHIMAP_CORE_MAPPING_THEOREM_H_
#define PHIMAP_CORE_MAPPING_THEOREM_H_

#include <string>

#include "core/mapping/mapping_spec.h"

namespace phimap {

// The theorem that applies to the mapping: its source, what it promises, and, where the mapping's
// own numbers fix them, its numbers (docs/maths.md).
std::string TheoremOf(const MappingSpec& mapping);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_THEOREM_H_
