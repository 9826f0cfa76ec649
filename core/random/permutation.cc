#include "core/random/permutation.h"

#include <numeric>
#include <utility>

#include "core/status/check.h"

namespace phimap {

std::vector<int64_t> FirstOfPermutation(int64_t n, int64_t k, const RandomStream& stream) {
  PHIMAP_CHECK(0 <= k && k <= n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t j = 0; j < k; ++j) {
    const uint64_t left = static_cast<uint64_t>(n - j);
    std::swap(order[j], order[j + static_cast<int64_t>(stream.UniformBelow(j, left))]);
  }
  order.resize(static_cast<size_t>(k));
  return order;
}

}  // namespace phimap
