#include "core/theory/fourier_bounds.h"

#include <algorithm>
#include <cmath>

#include "core/status/check.h"
#include "core/theory/count.h"

namespace phimap {
namespace {

// Returns the c of the bound 2 exp(−D a²/c).
double Constant(FourierForm form) { return form == FourierForm::kPhase ? 8 : 4; }

}  // namespace

std::optional<int64_t> FourierFeatures(FourierForm form, double a, double delta) {
  PHIMAP_CHECK(a > 0 && a <= 1 && delta > 0 && delta < 1);
  const double nats = std::log(2 / delta) / (a * a);
  if (form == FourierForm::kPhase) return CountAtLeast(8 * nats);
  std::optional<int64_t> features = CountAtLeast(4 * nats);
  if (features.has_value()) *features += *features % 2;
  return features;
}

double FourierError(FourierForm form, int64_t dimensions, double delta) {
  PHIMAP_CHECK(dimensions >= 1 && delta > 0 && delta < 1);
  return std::sqrt(Constant(form) * std::log(2 / delta) / static_cast<double>(dimensions));
}

double FourierUniformError(const FourierRegion& region, double delta) {
  PHIMAP_CHECK(region.dimensions >= 1 && region.columns >= 1 && region.gamma > 0 &&
               region.radius > 0 && delta > 0 && delta < 1);
  const bool pair = region.form == FourierForm::kSinCos;
  const double d = static_cast<double>(region.dimensions);
  const double p = static_cast<double>(region.columns);
  const double frequencies = pair ? d / 2 : d;
  const double length = std::sqrt(2 * region.gamma * p) +
                        std::sqrt(4 * region.gamma * std::log(2 / delta) / frequencies);
  const double kernel_slope = std::sqrt(2 * region.gamma / std::exp(1.0));
  const double slope = pair ? length + kernel_slope : 2 * (2 * length + kernel_slope);
  const double ball = pair ? 2 * region.radius : region.radius;
  double best = INFINITY;
  for (int step = 0; step < 1000; ++step) {
    const double r = ball * std::pow(10.0, -0.01 * step);
    const double log_points = (pair ? 1 : 2) * p * std::log1p(2 * ball / r);
    const double on_net = std::sqrt(Constant(region.form) * (log_points + std::log(4 / delta)) / d);
    best = std::min(best, on_net + r * slope);
  }
  return best;
}

}  // namespace phimap
