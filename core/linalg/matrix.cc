#include "core/linalg/matrix.h"

#include <sys/mman.h>

#include <cstdint>

namespace phimap {

void AskForLargePages(void* begin, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + kPage - 1) & ~(kPage - 1);
  const uintptr_t last = (reinterpret_cast<uintptr_t>(begin) + bytes) & ~(kPage - 1);
  if (first >= last) return;
  // Fails if the operating system has no such pages, which does no harm.
  static_cast<void>(madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
}

}  // namespace phimap
