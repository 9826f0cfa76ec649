#include "core/certificate/pair_error.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/status/check.h"
#include "core/theory/student.h"

namespace phimap {
namespace {

// Probability with which a statement may be wrong.
constexpr double kDoubt = 0.05;

// The .975 quantile of the normal distribution.
constexpr double kNormalQuantile = 1.959963984540054;

}  // namespace

std::optional<MeanInterval> JackknifeInterval(const RowErrors& errors) {
  const auto rows = static_cast<int64_t>(errors.sums.size());
  PHIMAP_CHECK(rows >= 3 && errors.counts.size() == errors.sums.size());
  // Each pair has two rows.
  const double sum = std::accumulate(errors.sums.begin(), errors.sums.end(), 0.0) / 2;
  const int64_t pairs = std::accumulate(errors.counts.begin(), errors.counts.end(), int64_t{0}) / 2;
  const double mean = sum / static_cast<double>(pairs);
  if (!(mean > 0) || !std::isfinite(mean)) return std::nullopt;
  double squares = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t others = pairs - errors.counts[i];
    PHIMAP_CHECK(others > 0);
    const double without = (sum - errors.sums[i]) / static_cast<double>(others);
    squares += (without / mean - 1) * (without / mean - 1);
  }
  const double n = static_cast<double>(rows);
  const double deviation = std::sqrt(std::log1p((n - 1) / n * squares));
  const double degrees = std::max(1.0, std::floor(n / 2) - 1);
  const double factor = std::exp(StudentQuantile(kNormalQuantile, degrees) * deviation);
  if (!std::isfinite(mean * factor)) return std::nullopt;
  return MeanInterval{.low = mean / factor, .high = mean * factor};
}

std::optional<MeanInterval> RatioInterval(const std::vector<double>& numerators,
                                          const std::vector<double>& denominators,
                                          double least_effective_rows) {
  const auto n = static_cast<double>(numerators.size());
  PHIMAP_CHECK(n >= 3 && numerators.size() == denominators.size());
  if (EffectiveCount(numerators) < least_effective_rows ||
      EffectiveCount(denominators) < least_effective_rows) {
    return std::nullopt;
  }
  const double above = std::accumulate(numerators.begin(), numerators.end(), 0.0);
  const double below = std::accumulate(denominators.begin(), denominators.end(), 0.0);
  const double ratio = above / below;
  if (!(ratio > 0) || !std::isfinite(ratio)) return std::nullopt;
  double squares = 0;
  for (size_t i = 0; i < numerators.size(); ++i) {
    const double without = (above - numerators[i]) / (below - denominators[i]) / ratio - 1;
    squares += without * without;
  }
  const double deviation = std::sqrt(std::log1p((n - 1) / n * squares));
  const double factor = std::exp(StudentQuantile(kNormalQuantile, n - 1) * deviation);
  const double largest = *std::max_element(denominators.begin(), denominators.end());
  // The rows of a kind that was not drawn: log(40)/n of them, of n rows with the sum `below`.
  const double unseen = std::log(2 / kDoubt) * largest / below;
  if (!std::isfinite(ratio * factor) || !std::isfinite(unseen)) return std::nullopt;
  return MeanInterval{.low = ratio / factor, .high = std::min(1.0, ratio * factor + unseen)};
}

double EffectiveCount(const std::vector<double>& numbers) {
  const double largest = numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
  if (!(largest > 0)) return 0;
  double sum = 0;
  double squares = 0;
  for (const double a : numbers) {
    sum += a / largest;
    squares += (a / largest) * (a / largest);
  }
  return sum * sum / squares;
}

PairBound BoundPairs(const std::vector<double>& disjoint) {
  PHIMAP_CHECK(!disjoint.empty());
  return {.pairs = static_cast<int64_t>(disjoint.size()),
          .largest = *std::max_element(disjoint.begin(), disjoint.end()),
          // 1 − e^x without cancellation.
          .share = -std::expm1(std::log(kDoubt) / static_cast<double>(disjoint.size()))};
}

}  // namespace phimap
