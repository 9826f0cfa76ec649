#include "core/theory/projection_bounds.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/status/check.h"
#include "core/theory/cosine_law.h"
#include "core/theory/count.h"

namespace phimap {
namespace {

bool IsShare(double x) { return x > 0 && x < 1; }
bool IsMargin(double x) { return x >= 1e-4 && x <= 1; }

// Returns 1/((1/2)(e²/2 − e³/3)). To make the probability of one tail at most p, this many
// dimensions are needed for each unit of ln(1/p).
double PerNat(double e) {
  PHIMAP_CHECK(IsShare(e));
  return 12 / (e * e * (3 - 2 * e));
}

// Returns the dimensions per nat of 1/delta by Theorem 2 of BBV as printed.
double LiteralPerNat(double e) {
  PHIMAP_CHECK(IsShare(e));
  return 4 / (e * e * (1 - e));
}

}  // namespace

std::optional<int64_t> LengthDimensions(Tier tier, double e, double delta) {
  PHIMAP_CHECK(tier != Tier::kExact && IsShare(delta));
  const double per_nat = tier == Tier::kLiteral ? LiteralPerNat(e) : PerNat(e);
  return CountAtLeast(per_nat * std::log(2 / delta));
}

std::optional<double> LengthDistortion(Tier tier, int64_t dimensions, double delta) {
  PHIMAP_CHECK(tier != Tier::kExact && dimensions >= 1 && IsShare(delta));
  const auto per_nat = [&](double e) {
    return tier == Tier::kLiteral ? LiteralPerNat(e) : PerNat(e);
  };
  const double wanted = static_cast<double>(dimensions) / std::log(2 / delta);
  // Both per_nat functions decrease with e up to this point; the literal one has its minimum at
  // 2/3.
  double low = 1e-12;
  double high = tier == Tier::kLiteral ? 2.0 / 3 : 1 - 1e-12;
  if (per_nat(high) > wanted) return std::nullopt;
  while (high - low > 1e-12 * high) {
    const double middle = low + (high - low) / 2;
    (per_nat(middle) > wanted ? low : high) = middle;
  }
  return high;
}

double LowestCosine(double cosine, double e) { return ((1 + e) * cosine - 2 * e) / (1 - e); }

double HighestCosine(double cosine, double e) {
  return 1 + (e - std::sqrt(1 - e * e) + (1 - e) * cosine) / (1 + e);
}

double DistortionForCosine(Tier tier, double from, double to) {
  PHIMAP_CHECK(tier != Tier::kExact && 0 < to && to < from && from <= 1);
  const double gap = from - to;
  if (tier == Tier::kLiteral) return gap / (2 + gap);
  // A cosine of 1 stays 1 whatever e is; the bounds on lengths need e < 1.
  return std::min(1 - 1e-6, gap / (2 - from - to));
}

std::optional<int64_t> AngleDimensions(double e, double angles, double delta) {
  PHIMAP_CHECK(angles >= 1 && IsShare(delta));
  return CountOver(PerNat(e) * std::log(6 * angles / delta));
}

double DataSetMargin(Tier tier, double margin, double e) {
  PHIMAP_CHECK(tier != Tier::kExact);
  return tier == Tier::kLiteral ? margin - 2 * e / (1 - e) : LowestCosine(margin, e);
}

std::optional<int64_t> F3Dimensions(Tier tier, double margin, double error, double delta) {
  PHIMAP_CHECK(IsMargin(margin) && IsShare(error) && IsShare(delta));
  switch (tier) {
    case Tier::kLiteral:
      return CountAtLeast(LiteralPerNat(margin / 16) * std::log(24 / (error * delta)));
    case Tier::kDerived:
      return CountAtLeast(PerNat(margin / (8 - 3 * margin)) * std::log(12 / (error * delta)));
    case Tier::kExact:
      break;
  }
  return ProjectionDimensions(margin / 2, margin / 4, error * delta / 4);
}

PerfectSample F3PerfectSample(Tier tier, double margin, double miss, double delta) {
  PerfectSample sample{.error = miss, .dimensions = {}, .examples = 0};
  // Iterates to the fixed point. d3 depends on ε only through ln 1/ε, so each step changes d3 by
  // less than a tenth of the step before. d3 never decreases, and converges to the smallest fixed
  // point.
  while (true) {
    const std::optional<int64_t> next = F3Dimensions(tier, margin, sample.error, delta);
    if (next == sample.dimensions) return sample;
    sample.dimensions = next;
    if (!next.has_value()) return sample;
    const double d3 = static_cast<double>(*next);
    const double examples = std::max(1.0, d3 * std::log(d3));
    sample.examples = static_cast<int64_t>(examples);
    sample.error = miss / examples;
  }
}

int64_t DirectDimensions(double margin, double error, double delta) {
  PHIMAP_CHECK(IsMargin(margin) && IsShare(error) && IsShare(delta));
  return ProjectionDimensions(margin, margin / 2, error * delta);
}

std::optional<int64_t> ProjectedKernelDimensions(double e, double points, double delta) {
  PHIMAP_CHECK(points >= 2 && IsShare(delta));
  // β is defined by n^−β = δ, so 2β ln n = 2 ln 1/δ.
  return CountAtLeast(PerNat(e) / 2 * (4 * std::log(points) - 2 * std::log(delta)));
}

double WeakLearnerSuccess(double margin, double alpha) {
  PHIMAP_CHECK(margin > 0 && margin <= 1 && alpha >= 0 && alpha < 1);
  return std::max(
      0.0, (1 / std::numbers::pi - 0.25) * margin - alpha * (0.5 + margin / std::numbers::pi));
}

int64_t WeakLearnerDraws(double success, double delta) {
  PHIMAP_CHECK(success >= 1e-12 && success < 1 && delta > 0 && delta < 1);
  return static_cast<int64_t>(std::ceil(std::log(delta) / std::log1p(-success)));
}

}  // namespace phimap
