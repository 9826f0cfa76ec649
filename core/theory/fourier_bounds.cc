#include "core/theory/fourier_bounds.h"

#include <cmath>

#include "core/status/check.h"
#include "core/theory/count.h"

namespace phimap {

std::optional<int64_t> FourierFeatures(FourierForm form, double a, double delta) {
  PHIMAP_CHECK(a > 0 && a <= 1 && delta > 0 && delta < 1);
  const double nats = std::log(2 / delta) / (a * a);
  if (form == FourierForm::kPhase) return CountAtLeast(8 * nats);
  std::optional<int64_t> features = CountAtLeast(4 * nats);
  if (features.has_value()) *features += *features % 2;
  return features;
}

}  // namespace phimap
