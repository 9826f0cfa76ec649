// Student's distribution.
#ifndef PHIMAP_CORE_THEORY_STUDENT_H_
#define PHIMAP_CORE_THEORY_STUDENT_H_

namespace phimap {

// Returns the quantile of Student's distribution at the probability at which the normal
// distribution has the quantile `z`, by the Cornish–Fisher expansion (Abramowitz, Stegun 26.7.5).
// The error is within 1e-3 for |z| up to 2 and at least 6 degrees of freedom, and falls as degrees
// grow. REQUIRES: degrees > 0.
inline double StudentQuantile(double z, double degrees) {
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  const double first = (z3 + z) / 4;
  const double second = (5 * z5 + 16 * z3 + 3 * z) / 96;
  const double third = (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384;
  return z + (first + (second + third / degrees) / degrees) / degrees;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_STUDENT_H_
