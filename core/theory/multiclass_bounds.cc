#include "core/theory/multiclass_bounds.h"

#include <cmath>

#include "core/status/check.h"
#include "core/theory/projection_bounds.h"

namespace phimap {
namespace {

// Returns the margin that Theorem 9 leaves at e = 0. In the proof it is a cosine.
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
  // At γ = 1 the margin is √((1−e)/(1+e)) − e/(1+e), which falls with e to −1/2. A smaller γ
  // subtracts (1−γ)(1+e)/(1−e), which rises with e. So the margin falls for every γ, to below 0.
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
