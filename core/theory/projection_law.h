// The exact laws of a cosine and of an inner product after a Gaussian random projection, anywhere
// in their range and to an absolute accuracy; core/theory/cosine_law.h has a tail of the first to a
// relative one.
//
// Let R be n×N with independent N(0, 1) entries and w, x unit vectors of R^N with cosine c; s =
// √(1 − c²). With X = |Rw|, which is chi with n degrees of freedom, Y chi with n − 1, and Z
// standard normal, all independent,
//     cos(Rw, Rx) < t   ⟺   Z < (t/√(1−t²))·Y − (c/s)·X      for −1 < t < 1
//     ⟨Rw, Rx⟩          =   c·X² + s·X·Z
// where Rx is c·Rw and s times an independent vector, of which Z is the part along Rw and Y the
// length of the rest. N does not matter; nor does the scale of R for the cosine.
#ifndef PHIMAP_CORE_THEORY_PROJECTION_LAW_H_
#define PHIMAP_CORE_THEORY_PROJECTION_LAW_H_

#include <cstdint>

namespace phimap {

// P[low <= cos(Rw, Rx) < high] for w, x of this cosine; P1 of Shi et al. 2012, section 5.1, is one
// minus it.
//
// Requires: n >= 1, −1 < cosine < 1, low <= high; bounds outside of [−1, 1] and infinite ones are
//           allowed. For n = 1 the cosine is −1 or 1.
// Accuracy: absolute error under 1e-10 for n up to 10^6 and |cosine| <= 0.9999; beyond, about
//           1e-16·√(n/(1 − cosine²)).
// Cost:     2 to 5 ms: up to 50,000 values of densities and Φ for each bound. Pure.
// Source:   Gauss–Legendre quadrature over both chi variables, cut where Φ's argument is ±9.
double CosineWithin(int64_t n, double cosine, double low, double high);

// P[low <= ⟨Rw, Rx⟩/n <= high] for unit vectors w, x of this cosine: the inner product after a
// projection scaled by 1/√n, as BuildRandomProjection makes it. P2 of Shi et al. 2012, section 5.1,
// is one minus it.
//
// Requires: n >= 1, −1 < cosine < 1, low <= high; infinite bounds are allowed.
// Accuracy: absolute error under 1e-10 for n up to 10^9 and |cosine| <= 1 − 1e-9.
// Cost:     0.1 to 0.5 ms. Pure.
// Source:   as above, over X.
double InnerProductWithin(int64_t n, double cosine, double low, double high);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_PROJECTION_LAW_H_
