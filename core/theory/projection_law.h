// The exact probability distributions of a cosine and of an inner product after a Gaussian random
// projection. The functions here cover the whole range of values, with a small absolute error.
// core/theory/cosine_law.h computes only a tail of the first distribution, but with a small
// relative error.
//
// Let w and x be unit vectors of R^N. Let c be their cosine, and s = √(1 − c²) their sine. The
// projection R is an n×N matrix of independent N(0, 1) entries. Then
//     Rx = c·Rw + s·G,
// where G is a vector of n independent N(0, 1) numbers that does not depend on Rw. Three numbers
// determine both results:
//     X   the length of Rw, a chi variable with n degrees of freedom;
//     Y   the length of the part of G orthogonal to Rw, a chi variable with n − 1 degrees;
//     Z   the component of G along Rw, a standard normal number.
// X, Y and Z are independent. In terms of them,
//     cos(Rw, Rx) < t   ⟺   Z < (t/√(1−t²))·Y − (c/s)·X      for −1 < t < 1
//     ⟨Rw, Rx⟩          =   c·X² + s·X·Z.
// Neither distribution depends on N. The cosine does not depend on the scale of R either.
#ifndef PHIMAP_CORE_THEORY_PROJECTION_LAW_H_
#define PHIMAP_CORE_THEORY_PROJECTION_LAW_H_

#include <cstdint>

namespace phimap {

// Returns P[low <= cos(Rw, Rx) < high] for unit vectors w and x whose cosine is `cosine`. The
// probability P1 of Shi et al. 2012, section 5.1, is one minus this result.
//
// Requires: n >= 1, −1 < cosine < 1, low <= high. The bounds may be infinite or outside of [−1, 1].
//           For n = 1 the projected cosine is −1 or 1.
// Accuracy: absolute error under 1e-10 for n up to 10^6 and |cosine| <= 0.9999. For other
//           arguments, the error is about 1e-16·√(n/(1 − cosine²)).
// Cost:     2 to 5 ms: up to 50,000 values of densities and Φ for each bound. Pure.
// Source:   Gauss–Legendre quadrature over both chi variables. The range is cut where Φ's argument
//           is −9 or 9.
double CosineWithin(int64_t n, double cosine, double low, double high);

// Returns P[low <= ⟨Rw, Rx⟩/n <= high] for unit vectors w and x whose cosine is `cosine`. ⟨Rw,
// Rx⟩/n is the inner product after a projection that is scaled by 1/√n, like those of
// BuildRandomProjection. The probability P2 of Shi et al. 2012, section 5.1, is one minus this
// result.
//
// Requires: n >= 1, −1 < cosine < 1, low <= high; infinite bounds are allowed.
// Accuracy: absolute error under 1e-10 for n up to 10^9 and |cosine| <= 1 − 1e-9.
// Cost:     0.1 to 0.5 ms. Pure.
// Source:   Gauss–Legendre quadrature over X.
double InnerProductWithin(int64_t n, double cosine, double low, double high);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_PROJECTION_LAW_H_
