#include "core/theory/weak_learner.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/status/check.h"

namespace phimap {

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
