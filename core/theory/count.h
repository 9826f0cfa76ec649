// Whole numbers from formulas: numbers of landmarks and of dimensions.
#ifndef PHIMAP_CORE_THEORY_COUNT_H_
#define PHIMAP_CORE_THEORY_COUNT_H_

#include <cmath>
#include <cstdint>
#include <optional>

namespace phimap {

// Above this a double cannot tell one integer from the next, so a count means nothing.
inline constexpr int64_t kMaxCount = int64_t{1} << 53;

// Returns the smallest count >= x, at least 1; nullopt for NaN and over kMaxCount.
inline std::optional<int64_t> CountAtLeast(double x) {
  if (!(x <= static_cast<double>(kMaxCount))) return std::nullopt;
  return x <= 1 ? 1 : static_cast<int64_t>(std::ceil(x));
}

// Returns the smallest count > x, at least 1; nullopt for NaN and over kMaxCount.
inline std::optional<int64_t> CountOver(double x) {
  if (!(x < static_cast<double>(kMaxCount))) return std::nullopt;
  return x < 1 ? 1 : static_cast<int64_t>(std::floor(x)) + 1;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_COUNT_H_
