// Numbers with bounds on their errors, for rounding bounds that are carried through operations.
#ifndef PHIMAP_CORE_KERNEL_ROUNDED_VALUE_H_
#define PHIMAP_CORE_KERNEL_ROUNDED_VALUE_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace phimap {

// A number from `low` to `high` that is computed with an error. The error is at most u·(absolute +
// relative·|number|), where u is the unit round-off.
struct RoundedValue {
  double low = 0;
  double high = 0;
  double absolute = 0;
  double relative = 0;

  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
  // Largest error, divided by u.
  double error() const { return absolute + relative * magnitude(); }
  bool is_exactly_zero() const { return low == 0 && high == 0 && absolute == 0; }

  static RoundedValue Exactly(double value) { return {value, value, 0, 0}; }
  static RoundedValue Between(double a, double b, double absolute, double relative) {
    return {std::min(a, b), std::max(a, b), absolute, relative};
  }
  // Returns a value ≥ 0 of which nothing else is known.
  static RoundedValue Unknown() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {0, kInfinity, kInfinity, 0};
  }
};

// Operands of a program with their errors. Fields are as in KernelOperands.
struct RoundedOperands {
  RoundedValue product;
  RoundedValue squared_distance;
  RoundedValue l1_distance;
  std::vector<RoundedValue> forms;
  // f_m(x)·f_m(a).
  std::vector<RoundedValue> factors;
};

// Properties of the float type that the rounding of an operation depends on. `unit` is the unit
// round-off u. A number that is too small for the type is rounded with an absolute error.
// `underflow` is the largest such error, divided by u. It is 0 if such errors are left out.
struct RoundingUnit {
  double unit = 0;
  double underflow = 0;
};

// Relative error, divided by u, that is assumed for a function that is accurate to a few ULP. The
// accuracies are in kernel_evaluator.h.
inline constexpr double kFunctionRoundings = 4;

inline RoundedValue RoundedSum(const RoundedValue& s, const RoundedValue& t) {
  const RoundedValue sum{s.low + t.low, s.high + t.high, s.absolute + t.absolute,
                         std::max(s.relative, t.relative) + 1};
  if (s.low >= 0 && t.low >= 0) return sum;
  return {sum.low, sum.high, s.error() + t.error(), 1};
}

inline RoundedValue RoundedProduct(const RoundedValue& s, const RoundedValue& t) {
  const double corners[] = {s.low * t.low, s.low * t.high, s.high * t.low, s.high * t.high};
  const auto scaled = [](double error, double by) { return error > 0 ? error * by : 0; };
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4),
          scaled(s.absolute, t.magnitude()) + scaled(t.absolute, s.magnitude()),
          s.relative + t.relative + 1};
}

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_ROUNDED_VALUE_H_
