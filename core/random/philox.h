// Philox4x32-10: random numbers as a pure function of a key and a counter.
//
// Source:   Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
// Quality:  passes BigCrush; 2^128 blocks per key, 2^64 keys.
// Cost:     20 widening multiplications a block, about 20 ns. No state, no allocation, thread-safe.
#ifndef PHIMAP_CORE_RANDOM_PHILOX_H_
#define PHIMAP_CORE_RANDOM_PHILOX_H_

#include <array>
#include <cstdint>

namespace phimap {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxBlock = std::array<uint32_t, 4>;

// Maps 128-bit counters to blocks. For a fixed key the map is a bijection, so no block repeats.
PhiloxBlock Philox4x32(const PhiloxKey& key, const PhiloxBlock& counter);

}  // namespace phimap

#endif  // PHIMAP_CORE_RANDOM_PHILOX_H_
