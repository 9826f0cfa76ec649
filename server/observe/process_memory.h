// The memory of the whole process: its worst case, and how the parts fit into a limit.
//
// The formula is the one under "Sizing" in docs/operations/size.md.
#ifndef PHIMAP_SERVER_OBSERVE_PROCESS_MEMORY_H_
#define PHIMAP_SERVER_OBSERVE_PROCESS_MEMORY_H_

#include <array>
#include <cstdint>

namespace phimap {

// The parts of the memory that flags limit.
enum class MemoryPart { kLive, kRequests, kBuilds, kConnections };
inline constexpr int kMemoryParts = 4;

// Limits by MemoryPart: bytes of loaded versions, of requests and of builds, and a number of
// connections.
using MemoryLimits = std::array<int64_t, kMemoryParts>;

// Returns the bytes that the process takes at most under these limits.
int64_t WorstCaseBytes(const MemoryLimits& limits);

// Lowers those of `limits` that are not `given`, so that the worst case is at most nine tenths of
// `bytes`, the memory that the process may have. Leaves them as they are if they fit already. None
// falls below a minimum with which a server can work; so with too little memory, or if what is
// given takes it all, the worst case stays above.
MemoryLimits FitInto(int64_t bytes, MemoryLimits limits,
                     const std::array<bool, kMemoryParts>& given);

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_PROCESS_MEMORY_H_
