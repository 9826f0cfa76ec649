// Numbers of 113 binary digits, with the functions that kernels need. With these an oracle is more
// accurate than any error of float64, which long double's 64 digits are not.
#ifndef PHIMAP_TESTS_SUPPORT_WIDE_NUMBER_H_
#define PHIMAP_TESTS_SUPPORT_WIDE_NUMBER_H_

#include <cfloat>
#include <cmath>

namespace phimap::testing {

#if LDBL_MANT_DIG == 113
using Wide = long double;
#else
__extension__ typedef __float128 Wide;
#endif

inline Wide WideAbs(Wide t) { return t < 0 ? -t : t; }

inline Wide WideSqrt(Wide t) {
  if (!(t > 0)) return 0;
  Wide root = std::sqrt(static_cast<double>(t));
  if (root == 0) return 0;
  // Each Newton step doubles the number of correct digits.
  for (int step = 0; step < 2; ++step) root = (root + t / root) / 2;
  return root;
}

// log 2 = Σ 1/(k·2^k).
inline Wide WideLogOfTwo() {
  Wide sum = 0;
  Wide power = 1;
  for (int k = 1; k <= 120; ++k) {
    power /= 2;
    sum += power / k;
  }
  return sum;
}

// e^t for |t| < 10,000, by the Taylor series of t − k·log 2.
inline Wide WideExp(Wide t) {
  static const Wide log_of_two = WideLogOfTwo();
  const auto k = static_cast<int>(std::lround(static_cast<double>(t / log_of_two)));
  const Wide rest = t - k * log_of_two;
  Wide sum = 1;
  Wide term = 1;
  for (int n = 1; n <= 34; ++n) {
    term *= rest / n;
    sum += term;
  }
  for (int n = 0; n < k; ++n) sum *= 2;
  for (int n = 0; n > k; --n) sum /= 2;
  return sum;
}

// log t for t > 0.
inline Wide WideLog(Wide t) {
  Wide y = std::log(static_cast<double>(t));
  // Halley's iteration on e^y = t triples the number of correct digits.
  for (int step = 0; step < 2; ++step) {
    const Wide e = WideExp(y);
    y += 2 * (t - e) / (t + e);
  }
  return y;
}

inline Wide WidePower(Wide t, int n) {
  Wide power = 1;
  for (int k = 0; k < n; ++k) power *= t;
  return power;
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_WIDE_NUMBER_H_
