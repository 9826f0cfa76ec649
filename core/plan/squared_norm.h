// ‖v‖² in float64, fast enough for rows that are served.
#ifndef PHIMAP_CORE_PLAN_SQUARED_NORM_H_
#define PHIMAP_CORE_PLAN_SQUARED_NORM_H_

#include <cstdint>

namespace phimap {

// Returns ‖v‖² with a relative error of about (count/8 + 8)·2⁻⁵³. The bits depend on v alone.
// Computes eight sums side by side, so that no addition waits for the one before. The eight sums
// are added at the end.
template <typename T>
double SquaredNorm(const T* v, int64_t count) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t j = 0;
  for (; j + kSums <= count; j += kSums) {
    for (int64_t s = 0; s < kSums; ++s) {
      const double value = v[j + s];
      sums[s] += value * value;
    }
  }
  double total = 0;
  for (; j < count; ++j) total += static_cast<double>(v[j]) * static_cast<double>(v[j]);
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_SQUARED_NORM_H_
