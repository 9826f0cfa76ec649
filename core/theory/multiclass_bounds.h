// Margins of several classes after a random projection; Shi et al. 2012, Theorems 8 and 9.
//
// The margin of a multiclass data set is the smallest difference between the cosine of the right
// class and the largest other one. A negative margin promises nothing.
#ifndef PHIMAP_CORE_THEORY_MULTICLASS_BOUNDS_H_
#define PHIMAP_CORE_THEORY_MULTICLASS_BOUNDS_H_

#include <cstdint>
#include <optional>

namespace phimap {

// Theorem 8: −(1+3e)/(1−e²) + √(1−e²)/(1+e) + (1+e)/(1−e)·γ, at n = AngleDimensions(e, L·m, δ) for
// m points of L classes. The proof's last step needs the rivals' cosines not to be negative.
double ClassesMargin(double margin, double e);
// The e at which ClassesMargin is `to`, to one part in 10^12; 0 < to < margin <= 1.
double ClassesDistortion(double margin, double to);

// Theorem 9, one weight vector for all classes, x ↦ (R_1 x, …, R_L x): −2e/(1−e) +
// (1+e)γ/(√(2L)(1−e)), at n = AngleDimensions(e, m(L−1), δ) rows of each R_y. Statement and proof
// normalise differently: this margin is over ‖v‖·√(‖R_y x‖² + ‖R_y' x‖²).
double OneParameterMargin(double margin, double e, int64_t classes);
// γ/(2√(2L) − γ): at this e and above Theorem 9 promises nothing. Since e shrinks with √L, n grows
// in proportion to L.
double OneParameterCriticalDistortion(double margin, int64_t classes);
// The e at which OneParameterMargin is half of γ/√(2L), its value at e = 0.
double OneParameterDistortion(double margin, int64_t classes);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_MULTICLASS_BOUNDS_H_
