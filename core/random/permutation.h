// Random order and random subsets of 0 … n−1.
#ifndef PHIMAP_CORE_RANDOM_PERMUTATION_H_
#define PHIMAP_CORE_RANDOM_PERMUTATION_H_

#include <cstdint>
#include <vector>

#include "core/random/random_stream.h"

namespace phimap {

// Returns the first k numbers of a uniformly random permutation of 0 … n−1. They are a uniform
// subset of k numbers, in uniform order. The result for k is the beginning of the result for every
// larger k. REQUIRES: 0 ≤ k ≤ n.
//
// Method:   Fisher–Yates, stopped after k steps; step j uses index j of the stream.
// Cost:     O(n) time and 8n bytes; k draws.
std::vector<int64_t> FirstOfPermutation(int64_t n, int64_t k, const RandomStream& stream);

}  // namespace phimap

#endif  // PHIMAP_CORE_RANDOM_PERMUTATION_H_
