#include "core/theory/gram_bounds.h"

#include <algorithm>
#include <cmath>

#include "core/status/check.h"

namespace phimap {
namespace {

void Check(const GramLaw& law) {
  PHIMAP_CHECK(law.m >= 1 && law.b > 0 && law.s >= 1);
  PHIMAP_CHECK(law.sampling != GramSampling::kQuantise || law.s == 1);
}

// Returns L, the largest modulus of an entry of K̂ − K.
double LargestChange(const GramLaw& law) {
  switch (law.sampling) {
    case GramSampling::kSparsify:
      return law.b * std::max(1.0, law.s - 1);
    case GramSampling::kQuantise:
      return 2 * law.b;
    case GramSampling::kBoth:
      return (law.s + 1) * law.b;
  }
  PHIMAP_CHECK(false);
}

}  // namespace

double EntryDeviation(const GramLaw& law) {
  Check(law);
  switch (law.sampling) {
    case GramSampling::kSparsify:
      return law.b * std::sqrt(law.s - 1);
    case GramSampling::kQuantise:
      return law.b;
    case GramSampling::kBoth:
      return law.b * std::sqrt(law.s);
  }
  PHIMAP_CHECK(false);
}

double AmsNormBound(const GramLaw& law) {
  return 4 * EntryDeviation(law) * std::sqrt(static_cast<double>(law.m));
}

double BernsteinNormBound(const GramLaw& law, double delta, double largest_row) {
  PHIMAP_CHECK(0 < delta && delta < 1);
  // At s = 1 every entry is kept, so the Gram matrix is unchanged.
  if (law.sampling == GramSampling::kSparsify && law.s == 1) return 0;
  const double sigma = EntryDeviation(law);
  const double m = static_cast<double>(law.m);
  const bool measured = law.sampling == GramSampling::kSparsify && largest_row >= 0;
  const double variance = measured ? largest_row * (law.s - 1) : m * sigma * sigma;
  const double log = std::log(2 * m / delta);
  return std::sqrt(2 * variance * log) + 2.0 / 3 * LargestChange(law) * log;
}

double RoundingProbability(int64_t m, double range, double s, double t) {
  PHIMAP_CHECK(m >= 1 && range > 0 && s > 0 && t >= 0);
  const double ratio = s * t / range;
  return std::min(1.0, 2 * std::exp(-2 * ratio * ratio / static_cast<double>(m)));
}

double RoundingScale(int64_t m, double range, double epsilon, double threshold) {
  PHIMAP_CHECK(m >= 1 && range > 0 && epsilon > 0 && threshold > 0);
  return 2 * range * std::sqrt(static_cast<double>(m)) / (epsilon * threshold);
}

}  // namespace phimap
