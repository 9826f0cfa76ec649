// Bytes of the heap that this process holds: operator new, counted. Linked into a test it replaces
// the global one.
#ifndef PHIMAP_TESTS_CORE_MAPPING_COUNTED_MEMORY_H_
#define PHIMAP_TESTS_CORE_MAPPING_COUNTED_MEMORY_H_

#include <cstdint>

namespace phimap::testing {

// Held now, and at most since the last ResetPeakBytes.
int64_t HeldBytes();
int64_t PeakBytes();
void ResetPeakBytes();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_COUNTED_MEMORY_H_
