// The sample quantile that certificates state.
#ifndef PHIMAP_CORE_CERTIFICATE_QUANTILE_H_
#define PHIMAP_CORE_CERTIFICATE_QUANTILE_H_

#include <algorithm>
#include <cmath>
#include <vector>

namespace phimap {

// Returns the smallest number in `sorted`, which rises, such that at least a share q of the numbers
// do not exceed it. REQUIRES: `sorted` is not empty.
inline double SortedQuantile(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

// Returns the SortedQuantile of numbers that are in any order, and reorders them. Costs O(n).
inline double QuantileOf(std::vector<double>& numbers, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(numbers.size())));
  const auto at = numbers.begin() + static_cast<int64_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(numbers.begin(), at, numbers.end());
  return *at;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_QUANTILE_H_
