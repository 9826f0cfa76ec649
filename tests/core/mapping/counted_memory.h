// Counts the bytes of heap memory that this process holds. A test that links this file uses its
// operator new instead of the standard one.
#ifndef PHIMAP_TESTS_CORE_MAPPING_COUNTED_MEMORY_H_
#define PHIMAP_TESTS_CORE_MAPPING_COUNTED_MEMORY_H_

#include <cstdint>

namespace phimap::testing {

// The bytes that are held now, and the most that were held at any time since the last
// ResetPeakBytes.
int64_t HeldBytes();
int64_t PeakBytes();
void ResetPeakBytes();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_COUNTED_MEMORY_H_
