#include "core/random/portable_math.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>

namespace phimap {
namespace {

// Excess precision (x87) or value-changing optimisation would break the promise of equal bits.
static_assert(FLT_EVAL_METHOD == 0 && std::numeric_limits<double>::is_iec559);
#ifdef __FAST_MATH__
#error "core/random needs IEEE arithmetic: do not compile it with -ffast-math"
#endif

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts. The first has 33 bits, so its product with an exponent (11 bits) is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInverseLn2 = 0x1.71547652b82fep+0;

constexpr uint64_t kMantissaMask = (uint64_t{1} << 52) - 1;
constexpr uint64_t kOneBits = uint64_t{1023} << 52;
constexpr uint64_t kSqrtHalfMantissa = 0x6a09e667f3bcd;  // of √2, rounded down

// Returns 2^k, which must be a normal number.
double PowerOfTwo(int k) { return std::bit_cast<double>(static_cast<uint64_t>(1023 + k) << 52); }

// Returns k·ln 2 + log(1 + f) + correction, for √½ ≤ 1 + f ≤ √2. A slightly larger range does no
// harm.
//
// Method: let s = f/(2 + f). Then log(1 + f) = 2·atanh(s) = 2s + s·R, with R = 2(s²/3 + s⁴/5 + …).
// The term 2s is f − f²/2 + s·f²/2, so the leading digits come from f, which is exact. Because s² ≤
// 0.0295, the first omitted term of R, 2·s²²/23, is below 2^-59 of the result.
double LogNear(int k, double f, double correction) {
  const double s = f / (2.0 + f);
  const double t = s * s;
  double r = 2.0 / 21;
  for (int n = 19; n >= 3; n -= 2) r = r * t + 2.0 / n;
  r *= t;
  const double half_square = 0.5 * f * f;
  const double low = s * (half_square + r) + (k * kLn2Low + correction);
  return k * kLn2High - ((half_square - low) - f);
}

// The two parts of x = 2^k · m with √½ ≤ m < √2. REQUIRES: x is positive and finite.
struct Scaled {
  int k;
  double m;
};
Scaled Split(double x) {
  int k = 0;
  if (x < std::numeric_limits<double>::min()) {  // subnormal: make it normal
    x *= 0x1p54;
    k = -54;
  }
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t mantissa = bits & kMantissaMask;
  k += static_cast<int>(bits >> 52) - 1023;
  const double m = std::bit_cast<double>(mantissa | kOneBits);
  return mantissa > kSqrtHalfMantissa ? Scaled{k + 1, 0.5 * m} : Scaled{k, m};
}

// Returns Σ coefficients[i] · x^i by Horner's rule.
template <int N>
double Polynomial(const double (&coefficients)[N], double x) {
  double value = coefficients[N - 1];
  for (int i = N - 2; i >= 0; --i) value = value * x + coefficients[i];
  return value;
}

// Coefficients of AS 241, for the quantile at p. kA and kB are numerator and denominator for |p −
// ½| ≤ 0.425. In the tails, kC and kD are for √(−log tail) ≤ 5, and kE and kF for larger values;
// `tail` is the smaller of p and 1 − p.
constexpr double kA[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                         1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                         3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr double kB[] = {1.0,
                         4.2313330701600911252e1,
                         6.8718700749205790830e2,
                         5.3941960214247511077e3,
                         2.1213794301586595867e4,
                         3.9307895800092710610e4,
                         2.8729085735721942674e4,
                         5.2264952788528545610e3};
constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                         5.76949722146069140550e0,  3.64784832476320460504e0,
                         1.27045825245236838258e0,  2.41780725177450611770e-1,
                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kD[] = {1.0,
                         2.05319162663775882187e0,
                         1.67638483018380384940e0,
                         6.89767334985100004550e-1,
                         1.48103976427480074590e-1,
                         1.51986665636164571966e-2,
                         5.47593808499534494600e-4,
                         1.05075007164441684324e-9};
constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                         1.78482653991729133580e0,  2.96560571828504891230e-1,
                         2.65321895265761230930e-2, 1.24266094738807843860e-3,
                         2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kF[] = {1.0,
                         5.99832206555887937690e-1,
                         1.36929880922735805310e-1,
                         1.48753612908506148525e-2,
                         7.86869131145613259100e-4,
                         1.84631831751005468180e-5,
                         1.42151175831644588870e-7,
                         2.04426310338993978564e-15};

}  // namespace

double Exp(double x) {
  if (x != x) return x;
  if (x > 709.8) return kInfinity;
  if (x < -745.2) return 0.0;
  // Writes x as k·ln 2 + r with an integer k and |r| ≤ 0.3466. The number k·ln 2 is computed in two
  // parts, `high` and `low`; for accuracy, `low` is subtracted last.
  const int k = static_cast<int>(x * kInverseLn2 + (x < 0 ? -0.5 : 0.5));
  const double high = x - k * kLn2High;
  const double low = k * kLn2Low;
  const double r = high - low;
  // Coefficients of the Taylor series. The first omitted term, r^14/14!, is below 2^-57. Each 1/n!
  // is correctly rounded, because n! is exact up to 18!.
  constexpr double kInverseFactorials[] = {
      1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const double tail = r * r * Polynomial(kInverseFactorials, r);
  const double value = 1.0 + (high - (low - tail));
  // Multiplies by 2^k in two factors, because 2^1024 and 2^-1074 are not normal numbers. The first
  // product is exact. So there is only one rounding in addition, and only if the result is
  // subnormal.
  const int first = k / 2;
  return value * PowerOfTwo(first) * PowerOfTwo(k - first);
}

double Log(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : kNaN;
  if (x == kInfinity) return x;
  const Scaled scaled = Split(x);
  return LogNear(scaled.k, scaled.m - 1.0, 0.0);
}

double Log1p(double x) {
  if (!(x > -1)) return x == -1 ? -kInfinity : kNaN;
  if (x == kInfinity || x == 0) return x;
  if (x > -0.29 && x < 0.41) return LogNear(0, x, 0.0);
  const double sum = 1.0 + x;
  // `lost` is the part that the addition lost (exact, Dekker's fast two-sum). It enters as a
  // first-order correction of the logarithm.
  const double lost = x > 1 ? 1.0 - (sum - x) : x - (sum - 1.0);
  const Scaled scaled = Split(sum);
  return LogNear(scaled.k, scaled.m - 1.0, lost / sum);
}

double NormalQuantile(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -kInfinity : p == 1 ? kInfinity : kNaN;
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(kA, r) / Polynomial(kB, r);
  }
  const double r = std::sqrt(-Log(q < 0 ? p : 1.0 - p));
  const double x = r <= 5 ? Polynomial(kC, r - 1.6) / Polynomial(kD, r - 1.6)
                          : Polynomial(kE, r - 5.0) / Polynomial(kF, r - 5.0);
  return q < 0 ? -x : x;
}

}  // namespace phimap
