// Numbers with bounds on their errors, for rounding bounds that are carried through operations.
#ifndef PHIMAP_CORE_KERNEL_ROUNDED_VALUE_H_
#define PHIMAP_CORE_KERNEL_ROUNDED_VALUE_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace phimap {

// A number from `low` to `high`, whose computed value is off by at most u·(absolute +
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
  // A value ≥ 0 of which nothing else is known.
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

// Properties of the float type that the rounding of an operation depends on. `unit`: u.
// `underflow`: the largest loss of a number that is too small for the type, divided by u; 0 if
// losses are not counted.
struct RoundingUnit {
  double unit = 0;
  double underflow = 0;
};

// Relative error of a function that is accurate to some ULP, divided by u; kernel_evaluator.h has
// the accuracies.
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
