#include "core/theory/binomial.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random/portable_math.h"
#include "core/status/check.h"
#include "core/theory/count.h"
#include "core/theory/monotone_search.h"

namespace phimap {
namespace {

// Returns ln n! minus Stirling's approximation, (n + ½) ln n − n + ½ ln 2π. REQUIRES: n >= 1.
double StirlingError(double n) {
  if (n < 16) {
    return std::lgamma(n + 1) - (n + 0.5) * std::log(n) + n - 0.5 * std::log(2 * std::numbers::pi);
  }
  // The first omitted term is less than 1/(1188·16⁹) = 1.3e-14.
  const double s = 1 / (n * n);
  return (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s / 1680))) / n;
}

// Returns (1 + v) ln(1 + v) − v for v > −1. Let m be the mean of a count. The probability that the
// count is (1 + v)·m falls off like exp(−m·Deviance(v)).
double Deviance(double v) {
  if (std::abs(v) > 0.1) return (1 + v) * std::log1p(v) - v;
  // Σ (−v)^j / (j (j − 1)) from j = 2 on.
  double power = v * v;
  double sum = 0;
  for (int j = 2; j < 20; ++j) {
    sum += power / (j * (j - 1));
    power *= -v;
  }
  return sum;
}

// Returns 1 + r(0) + r(0)·r(1) + … for a `ratio` r that falls below 1 and continues to fall.
template <typename Ratio>
double SumOfProducts(const Ratio& ratio) {
  double term = 1;
  double sum = 1;
  for (int64_t i = 0; term > 1e-18 * sum; ++i) {
    term *= ratio(static_cast<double>(i));
    sum += term;
  }
  return sum;
}

// Returns the smallest p for which `holds`, up to 2^-48, between 0 and 1. REQUIRES: `holds` is
// false below a number and true above it.
template <typename Condition>
double LeastProbability(const Condition& holds) {
  double low = 0;
  double high = 1;
  for (int i = 0; i < 48; ++i) {
    const double middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

double LogBinomial(int64_t k, int64_t n, double p) {
  PHIMAP_CHECK(0 <= k && k <= n && n <= kMaxCount && p > 0 && p < 1);
  const double trials = static_cast<double>(n);
  if (k == 0) return trials * std::log1p(-p);
  if (k == n) return trials * std::log(p);
  const double hits = static_cast<double>(k);
  const double misses = static_cast<double>(n - k);
  const double mean = trials * p;
  const double off = hits - mean;
  const double deviance =
      mean * Deviance(off / mean) + (trials - mean) * Deviance(-off / (trials - mean));
  return StirlingError(trials) - StirlingError(hits) - StirlingError(misses) - deviance +
         0.5 * (std::log(trials / misses) - std::log(2 * std::numbers::pi * hits));
}

double BinomialBelow(int64_t k, int64_t n, double p) {
  PHIMAP_CHECK(0 <= n && n <= kMaxCount && p > 0 && p < 1);
  if (k <= 0) return 0;
  if (k > n) return 1;
  const double trials = static_cast<double>(n);
  const double odds = p / (1 - p);
  // Away from the mean each term is smaller than the one before.
  if (static_cast<double>(k - 1) < trials * p) {
    const double top = static_cast<double>(k - 1);
    const double sum = SumOfProducts(
        [=](double i) { return std::max(0.0, top - i) / ((trials - top + i + 1) * odds); });
    return std::min(1.0, std::exp(LogBinomial(k - 1, n, p)) * sum);
  }
  const double bottom = static_cast<double>(k);
  const double sum = SumOfProducts(
      [=](double i) { return std::max(0.0, trials - bottom - i) * odds / (bottom + i + 1); });
  return std::max(0.0, 1 - std::exp(LogBinomial(k, n, p)) * sum);
}

std::optional<int64_t> TrialsFor(int64_t k, double p, double delta) {
  PHIMAP_CHECK(k >= 1 && p > 0 && p < 1 && delta > 0 && delta < 1);
  // Estimates n by the normal distribution with the same mean and variance. Let q = 1 − p, and let
  // z be the 1 − delta quantile of the normal distribution. The estimate is the solution n of n p −
  // z √(n p q) = k − ½.
  const double z = -NormalQuantile(delta) * std::sqrt(1 - p);
  const double root = (z + std::sqrt(z * z + 4 * static_cast<double>(k) - 2)) / 2;
  const std::optional<int64_t> guess = CountAtLeast(root * root / p);
  if (!guess.has_value() || k > kMaxCount) return std::nullopt;
  return FirstWhere(k, kMaxCount, *guess,
                    [=](int64_t n) { return BinomialBelow(k, n, p) <= delta; });
}

int64_t ConfidentRank(int64_t n, double alpha, double doubt) {
  if (n == 0 || alpha <= 0) return 0;
  // Searches the largest k with P[Bin(n, α) < k] ≤ doubt. The probability increases with k, from 0
  // at k = 0 to 1 at k = n + 1.
  int64_t low = 0;
  int64_t high = n + 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (BinomialBelow(middle, n, alpha) <= doubt ? low : high) = middle;
  }
  return low;
}

ProbabilityInterval BinomialInterval(int64_t k, int64_t n, double confidence) {
  PHIMAP_CHECK(0 <= k && k <= n && n >= 1 && confidence > 0 && confidence < 1);
  const double doubt = (1 - confidence) / 2;
  ProbabilityInterval interval;
  // P[Bin(n, p) <= k] falls as p grows. P[Bin(n, p) >= k] is P[Bin(n, 1 - p) <= n - k].
  if (k < n) {
    interval.high = LeastProbability([=](double p) { return BinomialBelow(k + 1, n, p) <= doubt; });
  }
  if (k > 0) {
    interval.low =
        1 - LeastProbability([=](double q) { return BinomialBelow(n - k + 1, n, q) <= doubt; });
  }
  return interval;
}

}  // namespace phimap
