#include "core/kernel/kernel_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/linalg/panel_product.h"
#include "core/status/check.h"

namespace phimap {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Of a function that is within some ULP; evaluator.h has the numbers.
constexpr double kFunctionRoundings = 4;
constexpr int64_t kGroups = 8;

RoundedValue Exactly(double value) { return {value, value, 0, 0}; }

RoundedValue Between(double a, double b, double absolute, double relative) {
  return {std::min(a, b), std::max(a, b), absolute, relative};
}

RoundedValue Affine(const RoundedValue& t, double a, double b) {
  // R|t| ≤ R(|at + b| + |b|)/|a|.
  return Between(a * t.low + b, a * t.high + b, std::abs(a) * t.absolute + t.relative * std::abs(b),
                 t.relative + 1);
}

RoundedValue PowerOf(const RoundedValue& t, int32_t n) {
  const double most = std::pow(t.magnitude(), n);
  double low = std::min(std::pow(t.low, n), std::pow(t.high, n));
  if (n % 2 == 0 && t.low < 0 && t.high > 0) low = 0;
  const double slope = n * std::pow(t.magnitude(), n - 1);
  return {low, most, t.absolute > 0 ? slope * t.absolute : 0, n * (t.relative + 1)};
}

// e^{t+δ} − e^t = e^t(e^δ − 1).
RoundedValue Exponential(const RoundedValue& t, double unit) {
  RoundedValue value{std::exp(t.low), std::exp(t.high), 0, kFunctionRoundings};
  double error = t.absolute;
  if (t.low == t.high || t.low >= 0) {
    error += t.relative * t.magnitude();
  } else {
    error += t.relative * std::max(0.0, t.high);
    value.absolute = t.relative * std::exp(-1.0);  // |t|e^t ≤ 1/e for t < 0
  }
  const double growth = std::expm1(unit * error) / unit;
  if (unit * error < 1) {
    value.relative = std::hypot(value.relative, growth);  // independent of each other
  } else {
    value.absolute += value.high / unit;  // nothing is left of the digits, but it stays below
  }
  return value;
}

RoundedValue Sum(const RoundedValue& s, const RoundedValue& t) {
  const RoundedValue sum{s.low + t.low, s.high + t.high, s.absolute + t.absolute,
                         std::max(s.relative, t.relative) + 1};
  if (s.low >= 0 && t.low >= 0) return sum;
  return {sum.low, sum.high, s.error() + t.error(), 1};
}

RoundedValue Product(const RoundedValue& s, const RoundedValue& t) {
  const double corners[] = {s.low * t.low, s.low * t.high, s.high * t.low, s.high * t.high};
  const auto scaled = [](double error, double by) { return error > 0 ? error * by : 0; };
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4),
          scaled(s.absolute, t.magnitude()) + scaled(t.absolute, s.magnitude()),
          s.relative + t.relative + 1};
}

RoundedValue SquareRoot(const RoundedValue& t, double unit) {
  const double low = std::sqrt(std::max(0.0, t.low));
  // √(t + δ) − √t is at most δ/(2√t), and √δ where t can be 0.
  const double absolute = t.absolute == 0 ? 0
                          : low > 0       ? t.absolute / (2 * low)
                                          : std::sqrt(t.absolute / unit);
  return {low, std::sqrt(std::max(0.0, t.high)), absolute, t.relative / 2 + 1};
}

RoundedValue Inverse(const RoundedValue& t) {
  if (!(t.low > 0)) return {0, kInfinity, kInfinity, 0};
  return {1 / t.high, 1 / t.low, 0, t.relative + t.absolute / t.low + 1};
}

// What is exactly 0 stays so.
RoundedValue InverseOrZero(const RoundedValue& t) {
  return t.low == 0 && t.high == 0 && t.absolute == 0 ? Exactly(0) : Inverse(t);
}

RoundedValue Tanh(const RoundedValue& t) {
  // Its slope is at most 1, and t·tanh'(t)/tanh(t) too.
  return {std::tanh(t.low), std::tanh(t.high), t.absolute, t.relative + kFunctionRoundings};
}

// Equal rows give exactly 0. Others that do too, their distance lost in rounding, are not foreseen.
RoundedValue IsZero(const RoundedValue& t) {
  return {t.low == 0 && t.high == 0 ? 1.0 : 0.0, t.low <= 0 && t.high >= 0 ? 1.0 : 0.0, 0, 0};
}

}  // namespace

double RoundedValue::magnitude() const { return std::max(std::abs(low), std::abs(high)); }

RoundedValue CarryRounding(const std::vector<KernelOp>& ops, const RoundedOperands& operands,
                           double unit) {
  std::vector<RoundedValue> stack;
  const auto pop = [&] {
    const RoundedValue top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const KernelOp& op : ops) {
    switch (op.code) {
      case KernelOpCode::kPushProduct:
      case KernelOpCode::kPushShiftedProduct:
        stack.push_back(operands.product);
        break;
      case KernelOpCode::kPushSquaredDistance:
        stack.push_back(operands.squared_distance);
        break;
      case KernelOpCode::kPushL1Distance:
        stack.push_back(operands.l1_distance);
        break;
      case KernelOpCode::kPushForm:
      case KernelOpCode::kPushString:
        stack.push_back(operands.forms[op.n]);
        break;
      case KernelOpCode::kPushFactor:
        stack.push_back(operands.factors[op.n]);
        break;
      case KernelOpCode::kAdd:
        stack.push_back(Sum(pop(), pop()));
        break;
      case KernelOpCode::kMultiply:
        stack.push_back(Product(pop(), pop()));
        break;
      case KernelOpCode::kAffine:
        stack.push_back(Affine(pop(), op.a, op.b));
        break;
      case KernelOpCode::kScale:
        stack.push_back(Affine(pop(), op.a, 0));
        break;
      case KernelOpCode::kPower:
        stack.push_back(PowerOf(pop(), op.n));
        break;
      case KernelOpCode::kExp:
        stack.push_back(Exponential(pop(), unit));
        break;
      case KernelOpCode::kTanh:
        stack.push_back(Tanh(pop()));
        break;
      case KernelOpCode::kIsZero:
        stack.push_back(IsZero(pop()));
        break;
      case KernelOpCode::kSquareRoot:
        stack.push_back(SquareRoot(pop(), unit));
        break;
      case KernelOpCode::kInverse:
        stack.push_back(Inverse(pop()));
        break;
      case KernelOpCode::kInverseOrZero:
        stack.push_back(InverseOrZero(pop()));
        break;
      default:  // cosines and sines: slope 1, and no kernel has them
        stack.push_back({-1, 1, pop().error() + kFunctionRoundings, 0});
        break;
    }
  }
  PHIMAP_CHECK(stack.size() == 1);
  return stack[0];
}

KernelRounding::KernelRounding(const KernelProgram& program, ConstMatrixView<double> rows,
                               double unit)
    : program_(program), columns_(rows.cols()), unit_(unit) {
  const double chain = static_cast<double>(std::min<int64_t>(rows.cols(), kChainBlock));
  sum_ = std::max(4.0, 2 * std::sqrt(chain / 3));
  const std::vector<double> norms = SquaredNorms(rows);
  std::vector<int64_t> order(static_cast<size_t>(rows.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return norms[i] < norms[j]; });
  // Without factors the group of the largest norm has the largest error.
  const int64_t groups = program.factors().empty() ? 1 : std::min<int64_t>(kGroups, rows.rows());
  for (int64_t g = 0; g < groups; ++g) {
    const auto at = [&](int64_t k) { return order.begin() + k * rows.rows() / groups; };
    groups_.push_back(GroupOf(rows, norms, {at(g), at(g + 1)}));
  }
}

KernelRounding::Group KernelRounding::GroupOf(ConstMatrixView<double> rows,
                                              const std::vector<double>& norms,
                                              const std::vector<int64_t>& members) const {
  Group group;
  group.form_norms.resize(program_.form_count());
  std::vector<double> applied(static_cast<size_t>(columns_));
  for (const int64_t j : members) {
    const double* row = rows.row(j);
    group.norm = std::max(group.norm, std::sqrt(norms[j]));
    group.least_norm = std::min(group.least_norm, std::sqrt(norms[j]));
    double l1_norm = 0;
    for (int64_t k = 0; k < columns_; ++k) l1_norm += std::abs(row[k]);
    group.l1_norm = std::max(group.l1_norm, l1_norm);
    for (size_t m = 0; m < program_.strings().size(); ++m) {
      group.form_norms[m] = std::max(group.form_norms[m], std::sqrt(row[m]));
    }
    for (size_t m = 0; m < program_.forms().size(); ++m) {
      program_.forms()[m].Apply(row, applied.data());
      double square = 0;
      for (const double value : applied) square += value * value;
      group.form_norms[m] = std::max(group.form_norms[m], std::sqrt(square));
    }
    WidenFactors(FactorsOf(row, norms[j]), group);
  }
  return group;
}

void KernelRounding::WidenFactors(const std::vector<RoundedValue>& factors, Group& group) const {
  if (group.factors.empty()) {
    group.factors = factors;
    return;
  }
  for (size_t m = 0; m < factors.size(); ++m) {
    RoundedValue& all = group.factors[m];
    all = {std::min(all.low, factors[m].low), std::max(all.high, factors[m].high),
           std::max(all.absolute, factors[m].absolute),
           std::max(all.relative, factors[m].relative)};
  }
}

// K(x, x)'s operands: distances are 0, and a square has no cancellation.
RoundedOperands KernelRounding::SelfOperands(const double* x, double squared_norm) const {
  RoundedOperands self;
  if (!program_.strings().empty()) {
    // Exact, and rounded once.
    for (int64_t m = 0; m < columns_; ++m) self.forms.push_back({x[m], x[m], 0, 1});
    return self;
  }
  self.product = {squared_norm, squared_norm, 0, sum_};
  self.squared_distance = Exactly(0);
  self.l1_distance = Exactly(0);
  for (const BilinearForm& form : program_.forms()) {
    const double square = form.Square(x);
    self.forms.push_back({square, square, 0, 1});
  }
  return self;
}

// f_m(x) of each factor.
std::vector<RoundedValue> KernelRounding::FactorsOf(const double* x, double squared_norm) const {
  std::vector<RoundedValue> factors;
  if (program_.factors().empty()) return factors;
  RoundedOperands self = SelfOperands(x, squared_norm);
  for (const std::vector<KernelOp>& ops : program_.factors()) {
    factors.push_back(CarryRounding(ops, self, unit_));
    self.factors.push_back(Product(factors.back(), factors.back()));
  }
  return factors;
}

double KernelRounding::Of(const double* x, double squared_norm, double largest) const {
  const double norm = std::sqrt(squared_norm);
  const std::vector<RoundedValue> factors = FactorsOf(x, squared_norm);
  double l1_norm = 0;
  if (program_.uses_l1_distances()) {
    for (int64_t k = 0; k < columns_; ++k) l1_norm += std::abs(x[k]);
  }
  double worst = 0;
  for (const Group& group : groups_) {
    RoundedOperands pair;
    const double product = norm * group.norm;
    pair.product = {-product, product, sum_ * product, 0};
    // Rows of other lengths are apart: far away an rbf is 0, and its error too.
    const double near = std::max({0.0, norm - group.norm, group.least_norm - norm});
    const double far = norm + group.norm;
    pair.squared_distance = {near * near, far * far,
                             sum_ / 2 * (squared_norm + group.norm * group.norm), 0};
    pair.l1_distance = {0, l1_norm + group.l1_norm, 0, sum_};
    // Never negative, and at most √(k_m(x, x)·k_m(a, a)).
    for (size_t m = 0; m < program_.strings().size(); ++m) {
      pair.forms.push_back({0, std::sqrt(x[m]) * group.form_norms[m], 0, 1});
    }
    for (size_t m = 0; m < program_.forms().size(); ++m) {
      const double form_norm = group.form_norms[m];
      pair.forms.push_back({-norm * form_norm, norm * form_norm, sum_ * norm * form_norm, 0});
    }
    for (size_t m = 0; m < factors.size(); ++m) {
      pair.factors.push_back(Product(factors[m], group.factors[m]));
    }
    const RoundedValue value = CarryRounding(program_.ops(), pair, unit_);
    const double most = std::min(largest, value.magnitude());
    worst = std::max(worst, value.absolute + value.relative * most);
  }
  return worst;
}

}  // namespace phimap
