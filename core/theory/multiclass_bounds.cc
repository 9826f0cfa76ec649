#include "core/theory/multiclass_bounds.h"

#include <cmath>

#include "core/status/check.h"
#include "core/theory/projection_bounds.h"

namespace phimap {
namespace {

// Margin that Theorem 9 leaves at e = 0: the proof's cosine.
double OneParameterCosine(double margin, int64_t classes) {
  PHIMAP_CHECK(margin > 0 && margin <= 1 && classes >= 2);
  return margin / std::sqrt(2 * static_cast<double>(classes));
}

}  // namespace

double ClassesMargin(double margin, double e) {
  return -(1 + 3 * e) / ((1 - e) * (1 + e)) + std::sqrt((1 - e) / (1 + e)) +
         (1 + e) / (1 - e) * margin;
}

double ClassesDistortion(double margin, double to) {
  PHIMAP_CHECK(0 < to && to < margin && margin <= 1);
  // The margin at γ = 1 is √((1−e)/(1+e)) − e/(1+e), which falls to −1/2; a smaller γ takes
  // (1−γ)(1+e)/(1−e) off it, which rises: so it falls everywhere, to below 0.
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (ClassesMargin(margin, middle) >= to ? low : high) = middle;
  }
  return low;
}

double OneParameterMargin(double margin, double e, int64_t classes) {
  return LowestCosine(OneParameterCosine(margin, classes), e);
}

double OneParameterCriticalDistortion(double margin, int64_t classes) {
  const double cosine = OneParameterCosine(margin, classes);
  return cosine / (2 - cosine);
}

double OneParameterDistortion(double margin, int64_t classes) {
  const double cosine = OneParameterCosine(margin, classes);
  return DistortionForCosine(Tier::kDerived, cosine, cosine / 2);
}

}  // namespace phimap
