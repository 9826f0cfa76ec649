// exp, log and the normal quantile with the same bits on every platform.
//
// The exp of two C libraries may differ in the last bit. Even one bit can change which rows a
// reservoir keeps, or the entries of a random projection, for the same seed. So the functions here
// use only the operations + − × ÷ and sqrt of IEEE binary64, which the standard requires to be
// correctly rounded, and bit operations, all in a fixed order. REQUIRES round to nearest and no
// contraction into fused operations, which core/CMakeLists.txt ensures.
//
// portable_math_test measures the accuracy, with 80-bit long double as the reference. No function
// allocates; all are thread-safe.
#ifndef PHIMAP_CORE_RANDOM_PORTABLE_MATH_H_
#define PHIMAP_CORE_RANDOM_PORTABLE_MATH_H_

namespace phimap {

// Returns e^x. A number in parentheses is the largest error seen in tests.
//
// Range:    all doubles. The result is +inf for x above 709.7827… and 0 for x below −745.13…, with
//           gradual underflow; NaN for NaN.
// Accuracy: 1 ULP (0.84 seen); 2 ULP where the result is subnormal.
// Cost:     about 8 ns.
double Exp(double x);

// Returns the natural logarithm of x.
//
// Range:    x > 0, subnormals included. ±0 gives −inf, +inf gives +inf, and x < 0 and NaN give NaN.
//           Log(1) is +0.
// Accuracy: 1 ULP (0.79 seen).
// Cost:     about 10 ns.
double Log(double x);

// Returns log(1 + x), accurately even where 1 + x is rounded.
//
// Range:    x > −1. −1 gives −inf, +inf gives +inf, and x < −1 and NaN give NaN. Log1p(±0) is ±0.
// Accuracy: 1 ULP for |x| < 0.29, 1.5 ULP for other x (0.76 seen).
// Cost:     about 10 ns.
double Log1p(double x);

// Returns the normal quantile at p: the number x for which a standard normal number is below x with
// probability p.
//
// Range:    0 < p < 1. 0 gives −inf, 1 gives +inf, and anything else gives NaN. NormalQuantile(1 −
//           p) = −NormalQuantile(p) whenever 1 − p is exact.
// Accuracy: relative error 1e-15 (7.6e-16 seen) for p ≤ 1/2, and by symmetry for p > 1/2. A p near
//           1 itself determines the tail 1 − p only to 2^-54.
// Cost:     about 10 ns in the middle 85 %, 25 ns in the tails.
// Source:   Wichura, algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
double NormalQuantile(double p);

}  // namespace phimap

#endif  // PHIMAP_CORE_RANDOM_PORTABLE_MATH_H_
