// Finds the smallest whole number for which a monotone condition holds.
#ifndef PHIMAP_CORE_THEORY_MONOTONE_SEARCH_H_
#define PHIMAP_CORE_THEORY_MONOTONE_SEARCH_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"

namespace phimap {

// Returns the smallest n in low..high with holds(n); nullopt if there is none.
//
// Requires: holds is monotone (once true, true from there on); low <= high < 2^62.
// Cost:     about 2·log2|n − guess| calls; two or three when `guess` is right. Pure if `holds` is.
inline std::optional<int64_t> FirstWhere(int64_t low, int64_t high, int64_t guess,
                                         absl::FunctionRef<bool(int64_t)> holds) {
  // Invariant: holds(n) is false for low <= n < first, and true at `known`.
  int64_t first = low;
  int64_t known = std::clamp(guess, low, high);
  if (holds(known)) {
    for (int64_t step = 1; known > first; step *= 2) {
      const int64_t n = std::max(first, known - step);
      if (!holds(n)) {
        first = n + 1;
        break;
      }
      known = n;
    }
  } else {
    for (int64_t step = 1;; step *= 2) {
      first = known + 1;
      if (first > high) return std::nullopt;
      known = std::min(high, known + step);
      if (holds(known)) break;
    }
  }
  while (first < known) {
    const int64_t middle = first + (known - first) / 2;
    if (holds(middle)) {
      known = middle;
    } else {
      first = middle + 1;
    }
  }
  return known;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_MONOTONE_SEARCH_H_
