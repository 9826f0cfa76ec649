// exp, log and the normal quantile with the same bits on every platform.
//
// The exp of two C libraries may differ in the last bit, and one bit is enough to give another
// reservoir or another projection from the same seed. The functions here use only IEEE binary64 + −
// × ÷, sqrt (correctly rounded by the standard) and bit operations, in a fixed order. REQUIRES
// round to nearest and no contraction into fused operations, which core/CMakeLists.txt ensures.
//
// Accuracy is measured against 80-bit long double in portable_math_test. No function allocates; all
// are thread-safe.
#ifndef PHIMAP_CORE_RANDOM_PORTABLE_MATH_H_
#define PHIMAP_CORE_RANDOM_PORTABLE_MATH_H_

namespace phimap {

// Returns e^x.
//
// Range:    all doubles. +inf above 709.7827…, gradual underflow, 0 below −745.13…; NaN gives NaN.
// Accuracy: 1 ULP (0.84 seen); 2 where the result is subnormal.
// Cost:     about 8 ns.
double Exp(double x);

// Returns the natural logarithm.
//
// Range:    x > 0, subnormals included; ±0 gives −inf, x < 0 and NaN give NaN, +inf gives +inf.
//           Log(1) is +0.
// Accuracy: 1 ULP (0.79 seen).
// Cost:     about 10 ns.
double Log(double x);

// Returns log(1 + x), accurately even where 1 + x is rounded.
//
// Range:    x > −1; −1 gives −inf, x < −1 and NaN give NaN, +inf gives +inf. Log1p(±0) is ±0.
// Accuracy: 1 ULP for |x| < 0.29, else 1.5 ULP (0.76 seen).
// Cost:     about 10 ns.
double Log1p(double x);

// Returns the x with P(N(0,1) < x) = p: the inverse of the normal distribution function.
//
// Range:    0 < p < 1; 0 and 1 give −inf and +inf, anything else NaN. NormalQuantile(1 − p) =
//           −NormalQuantile(p) whenever 1 − p is exact.
// Accuracy: relative error 1e-15 (7.6e-16 seen) for p ≤ 1/2, and by symmetry for p > 1/2. There p =
//           1 − tail holds the tail only to 2^-54.
// Cost:     about 10 ns in the middle 85 %, 25 ns in the tails.
// Source:   Wichura, algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
double NormalQuantile(double p);

}  // namespace phimap

#endif  // PHIMAP_CORE_RANDOM_PORTABLE_MATH_H_
