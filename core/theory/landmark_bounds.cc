#include "core/theory/landmark_bounds.h"

#include <cmath>

#include "core/status/check.h"
#include "core/theory/binomial.h"
#include "core/theory/count.h"

namespace phimap {

std::optional<int64_t> LiteralLandmarks(double margin, double error, double delta) {
  PHIMAP_CHECK(margin >= 1e-4 && margin <= 1 && error > 0 && error < 1 && delta > 0 && delta < 1);
  return CountAtLeast(8 / error * (1 / (margin * margin) - std::log(delta)));
}

int64_t HelpfulDraws(double margin) {
  PHIMAP_CHECK(margin >= 1e-4 && margin <= 1);
  // The margin is usually the double nearest to a decimal number: 0.2 must give 99, not 100.
  return static_cast<int64_t>(std::ceil(4 / (margin * margin) * (1 - 1e-15))) - 1;
}

std::optional<int64_t> BinomialLandmarks(double margin, double error, double delta) {
  return TrialsFor(HelpfulDraws(margin), error, delta);
}

std::optional<double> ErrorOfLandmarks(double margin, int64_t landmarks, double delta) {
  const int64_t draws = HelpfulDraws(margin);
  PHIMAP_CHECK(landmarks >= 1 && landmarks <= kMaxCount);
  if (landmarks < draws) return std::nullopt;
  double low = std::log(1e-30);
  double high = 0;
  for (int i = 0; i < 64 && high - low > 1e-10; ++i) {
    const double middle = (low + high) / 2;
    (BinomialBelow(draws, landmarks, std::exp(middle)) <= delta ? high : low) = middle;
  }
  const double error = std::exp(high);
  return error < 1 ? std::optional<double>(error) : std::nullopt;
}

}  // namespace phimap
