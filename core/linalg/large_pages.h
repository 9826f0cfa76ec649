// Pages of 2 MiB for large arrays.
#ifndef PHIMAP_CORE_LINALG_LARGE_PAGES_H_
#define PHIMAP_CORE_LINALG_LARGE_PAGES_H_

#include <cstddef>

namespace phimap {

// Asks the system to back an array that nothing was written to yet with pages of 2 MiB, if it is of
// 32 MiB or more: 160 MB are otherwise 40,000 page faults. A wish, which a system without such
// pages ignores; costs up to 2 MiB of memory.
void PreferLargePages(void* begin, size_t bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_LARGE_PAGES_H_
