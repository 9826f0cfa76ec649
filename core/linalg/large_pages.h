// Pages of 2 MiB for large arrays.
#ifndef PHIMAP_CORE_LINALG_LARGE_PAGES_H_
#define PHIMAP_CORE_LINALG_LARGE_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "core/linalg/matrix.h"

namespace phimap {

inline constexpr size_t kLargePageBytes = size_t{2} << 20;

// Returns an array for data that is read repeatedly. An array of 2 MiB or more begins at a page of
// 2 MiB and has as many such pages as fit. With pages of 4 KiB, a matrix of 8 MiB would take 2,048
// pages, more than the TLB of a core holds.
template <typename T>
AlignedArray<T> LargePageArray(int64_t count) {
  const size_t bytes = sizeof(T) * static_cast<size_t>(count);
  if (bytes < kLargePageBytes) return AlignedArray<T>(count);
  AlignedArray<T> array(count, kLargePageBytes);
  AskForLargePages(array.data(), bytes);
  return array;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_LARGE_PAGES_H_
