// Margins of several classes after a random projection; Shi et al. 2012, Theorems 8 and 9.
//
// The margin of a multiclass data set is the smallest difference, over all examples, between the
// cosine of the right class and the largest cosine of another class. A negative margin promises
// nothing.
#ifndef PHIMAP_CORE_THEORY_MULTICLASS_BOUNDS_H_
#define PHIMAP_CORE_THEORY_MULTICLASS_BOUNDS_H_

#include <cstdint>
#include <optional>

namespace phimap {

// Returns the margin of Theorem 8, −(1+3e)/(1−e²) + √(1−e²)/(1+e) + (1+e)/(1−e)·γ. For m points of
// L classes, it needs n = AngleDimensions(e, L·m, δ) dimensions and holds with probability 1 − δ.
// The last step of the proof needs the cosines of the wrong classes not to be negative.
double ClassesMargin(double margin, double e);
// Returns the e at which ClassesMargin is `to`, to one part in 10^12. REQUIRES: 0 < to < margin <=
// 1.
double ClassesDistortion(double margin, double to);

// Returns the margin of Theorem 9, −2e/(1−e) + (1+e)γ/(√(2L)(1−e)). The theorem uses one weight
// vector v for all L classes. A row x is mapped to (R_1 x, …, R_L x), where R_y is the projection
// for class y. For m points, each R_y needs n = AngleDimensions(e, m(L−1), δ) rows. The theorem's
// statement and its proof normalise the margin differently. The margin returned is divided by
// ‖v‖·√(‖R_y x‖² + ‖R_y' x‖²), where y and y' are the two classes that are compared.
double OneParameterMargin(double margin, double e, int64_t classes);
// Returns γ/(2√(2L) − γ). If e is at least this large, Theorem 9 promises nothing. This e falls as
// 1/√L, so the number of dimensions n grows in proportion to L.
double OneParameterCriticalDistortion(double margin, int64_t classes);
// Returns the e at which OneParameterMargin is half of its value at e = 0, which is γ/√(2L).
double OneParameterDistortion(double margin, int64_t classes);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_MULTICLASS_BOUNDS_H_
