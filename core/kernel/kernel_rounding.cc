#include "core/kernel/kernel_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/linalg/panel_product.h"
#include "core/status/check.h"

namespace phimap {
namespace {

constexpr int64_t kGroups = 8;
// Maximum number of ranges of K(a, a) that rows are grouped by.
constexpr int kShareGroups = 48;

// Returns ⌊4·log₂ k⌋, without std::log2, whose last digit depends on the machine.
int QuarterOctave(double k) {
  int exponent = 0;
  const double mantissa = std::frexp(k, &exponent) * 2;  // 1 … 2
  constexpr double kQuarters[] = {0x1.306fe0a31b715p+0, 0x1.6a09e667f3bcdp+0, 0x1.ae89f995ad3adp+0};
  int quarter = 0;
  for (const double bound : kQuarters) quarter += mantissa >= bound ? 1 : 0;
  return 4 * (exponent - 1) + quarter;
}

}  // namespace

KernelRounding::KernelRounding(const KernelProgram& program, int64_t columns, double unit,
                               bool of_shares)
    : program_(program), columns_(columns), unit_(unit), of_shares_(of_shares) {
  const double chain = static_cast<double>(std::min<int64_t>(columns, kChainBlock));
  sum_ = std::max(4.0, 2 * std::sqrt(chain / 3));
  // The smallest positive number of the type, divided by u. The type is float32 if u is large, and
  // float64 otherwise.
  if (of_shares) underflow_ = unit > 0x1p-50 ? 0x1p-149 / unit : 0x1p-1074 / unit;
}

KernelRounding::KernelRounding(const KernelProgram& program, ConstMatrixView<double> rows,
                               double unit)
    : KernelRounding(program, rows.cols(), unit, /*of_shares=*/false) {
  const std::vector<double> norms = SquaredNorms(rows);
  std::vector<int64_t> order(static_cast<size_t>(rows.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return norms[i] < norms[j]; });
  // Without factors one group is enough: the row of the largest norm has the largest error.
  const int64_t groups = program.factors().empty() ? 1 : std::min<int64_t>(kGroups, rows.rows());
  for (int64_t g = 0; g < groups; ++g) {
    const auto at = [&](int64_t k) { return order.begin() + k * rows.rows() / groups; };
    groups_.push_back(GroupOf(rows, norms, {at(g), at(g + 1)}));
  }
}

KernelRounding KernelRounding::OfShares(const KernelProgram& program, ConstMatrixView<double> rows,
                                        const std::vector<double>& self, double unit) {
  KernelRounding rounding(program, rows.cols(), unit, /*of_shares=*/true);
  if (rows.rows() == 0) return rounding;
  const std::vector<double> norms = SquaredNorms(rows);
  int least = std::numeric_limits<int>::max();
  int largest = std::numeric_limits<int>::min();
  for (const double k : self) {
    PHIMAP_CHECK(k > 0);
    least = std::min(least, QuarterOctave(k));
    largest = std::max(largest, QuarterOctave(k));
  }
  const int width = (largest - least) / kShareGroups + 1;
  // Groups by norm too, because a row far from all others would loosen the bound of its group.
  std::map<std::pair<int, int>, std::vector<int64_t>> members;
  for (int64_t j = 0; j < rows.rows(); ++j) {
    const int octaves = norms[j] > 0 ? std::ilogb(norms[j]) / 4 : std::numeric_limits<int>::min();
    members[{(QuarterOctave(self[j]) - least) / width, octaves}].push_back(j);
  }
  for (const auto& [key, rows_of_group] : members) {
    rounding.groups_.push_back(rounding.GroupOfShares(rows, norms, self, rows_of_group));
  }
  return rounding;
}

KernelRounding::Group KernelRounding::GroupOfShares(ConstMatrixView<double> rows,
                                                    const std::vector<double>& norms,
                                                    const std::vector<double>& self,
                                                    const std::vector<int64_t>& members) const {
  Group group = GroupOf(rows, norms, members);
  for (const int64_t j : members) {
    group.self = std::max(group.self, self[j]);
    group.least_self = std::min(group.least_self, self[j]);
  }
  group.members = members;
  return group;
}

KernelRounding::Group KernelRounding::GroupOf(ConstMatrixView<double> rows,
                                              const std::vector<double>& norms,
                                              const std::vector<int64_t>& members) const {
  const auto length = [](const std::vector<double>& v) {
    double square = 0;
    for (const double value : v) square += value * value;
    return std::sqrt(square);
  };
  Group group;
  group.form_norms.resize(program_.form_count());
  group.sums.resize(program_.sums().size());
  group.least_sums.assign(program_.sums().size(), std::numeric_limits<double>::infinity());
  group.form_errors.resize(program_.forms().size());
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
      group.form_norms[m] = std::max(group.form_norms[m], length(applied));
      if (!of_shares_) continue;
      program_.forms()[m].ApplyMagnitudes(row, applied.data());
      group.form_errors[m] = std::max(group.form_errors[m], length(applied));
    }
    for (size_t m = 0; m < program_.sums().size(); ++m) {
      const double size = program_.sums()[m].SizeOf(row, columns_);
      group.sums[m] = std::max(group.sums[m], size);
      group.least_sums[m] = std::min(group.least_sums[m], size);
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

// Returns the operands of K(x, x). Distances are 0, and sums of squares have no cancellation.
RoundedOperands KernelRounding::SelfOperands(const double* x, double squared_norm) const {
  RoundedOperands self;
  if (!program_.strings().empty()) {
    // String values are exact before they are rounded once.
    for (int64_t m = 0; m < columns_; ++m) self.forms.push_back({x[m], x[m], 0, 1});
    return self;
  }
  self.product = {squared_norm, squared_norm, 0, sum_};
  const bool is_zero = std::all_of(x, x + columns_, [](double value) { return value == 0; });
  if (!is_zero) self.product.absolute = static_cast<double>(columns_) * underflow_;
  self.squared_distance = RoundedValue::Exactly(0);
  self.l1_distance = RoundedValue::Exactly(0);
  for (const BilinearForm& form : program_.forms()) {
    self.forms.push_back(SelfForm(form, x, is_zero));
  }
  for (const ColumnSum& sum : program_.sums()) {
    self.forms.push_back(RoundedSelfSum(sum.term, sum.Self(x, columns_), sum_,
                                        static_cast<double>(columns_) * underflow_));
  }
  return self;
}

RoundedValue KernelRounding::SelfForm(const BilinearForm& form, const double* x,
                                      bool is_zero) const {
  const double square = form.Square(x);
  if (!of_shares_) return {square, square, 0, 1};
  std::vector<double> magnitudes(static_cast<size_t>(columns_));
  form.ApplyMagnitudes(x, magnitudes.data());
  double sum = 0;
  for (int64_t k = 0; k < columns_; ++k) sum += std::abs(x[k]) * magnitudes[k];
  // Each of two sums may underflow: A x, and the product of A x with x.
  const double lost = is_zero ? 0 : 2 * static_cast<double>(columns_) * underflow_;
  return {square, square, 2 * sum_ * sum + lost, 0};
}

// Returns f_m(x) with its error, for each factor m.
std::vector<RoundedValue> KernelRounding::FactorsOf(const double* x, double squared_norm) const {
  std::vector<RoundedValue> factors;
  if (program_.factors().empty()) return factors;
  RoundedOperands self = SelfOperands(x, squared_norm);
  for (const std::vector<KernelOp>& ops : program_.factors()) {
    factors.push_back(CarryRounding(ops, self, unit_, underflow_));
    self.factors.push_back(RoundedProduct(factors.back(), factors.back()));
  }
  return factors;
}

double KernelRounding::L1NormOf(const double* x) const {
  double l1_norm = 0;
  if (program_.uses_l1_distances()) {
    for (int64_t k = 0; k < columns_; ++k) l1_norm += std::abs(x[k]);
  }
  return l1_norm;
}

RoundedOperands KernelRounding::PairOperands(const double* x, double squared_norm, double l1_norm,
                                             const std::vector<RoundedValue>& factors,
                                             const Group& group) const {
  const double norm = std::sqrt(squared_norm);
  RoundedOperands pair;
  const double product = norm * group.norm;
  const double lost = static_cast<double>(columns_) * underflow_;
  pair.product = {-product, product, sum_ * product + lost, 0};
  // Rows of different lengths are at least `near` apart. If `near` is large, an rbf is 0, and so is
  // its error.
  const double near = std::max({0.0, norm - group.norm, group.least_norm - norm});
  const double far = norm + group.norm;
  pair.squared_distance = {near * near, far * far,
                           sum_ / 2 * (squared_norm + group.norm * group.norm) + 2 * lost, 0};
  pair.l1_distance = {0, l1_norm + group.l1_norm, 0, sum_};
  // A string kernel is never negative, and is at most √(k_m(x, x)·k_m(a, a)).
  for (size_t m = 0; m < program_.strings().size(); ++m) {
    pair.forms.push_back({0, std::sqrt(x[m]) * group.form_norms[m], 0, 1});
  }
  for (size_t m = 0; m < program_.forms().size(); ++m) {
    const double value = norm * group.form_norms[m];
    const double error =
        of_shares_ ? 2 * sum_ * norm * group.form_errors[m] : sum_ * norm * group.form_norms[m];
    pair.forms.push_back({-value, value, error + 2 * lost, 0});
  }
  for (size_t m = 0; m < program_.sums().size(); ++m) {
    const ColumnSum& sum = program_.sums()[m];
    pair.forms.push_back(RoundedColumnSum(sum.term, sum.SizeOf(x, columns_), group.least_sums[m],
                                          group.sums[m], sum_, lost));
  }
  for (size_t m = 0; m < factors.size(); ++m) {
    pair.factors.push_back(RoundedProduct(factors[m], group.factors[m]));
  }
  return pair;
}

double KernelRounding::Of(const double* x, double squared_norm, double largest) const {
  const std::vector<RoundedValue> factors = FactorsOf(x, squared_norm);
  const double l1_norm = L1NormOf(x);
  double worst = 0;
  for (const Group& group : groups_) {
    const RoundedValue value = CarryRounding(
        program_.ops(), PairOperands(x, squared_norm, l1_norm, factors, group), unit_);
    const double most = std::min(largest, value.magnitude());
    worst = std::max(worst, value.absolute + value.relative * most);
  }
  return worst;
}

double KernelRounding::ScaledOver(const double* x, double squared_norm, double self, double l1_norm,
                                  const std::vector<RoundedValue>& factors,
                                  const Group& group) const {
  const RoundedValue value = CarryRounding(
      program_.ops(), PairOperands(x, squared_norm, l1_norm, factors, group), unit_, underflow_);
  // Takes the roots separately, because the product of two small numbers could underflow.
  const double most =
      std::min(std::sqrt(std::max(0.0, self)) * std::sqrt(group.self), value.magnitude());
  return (value.absolute + value.relative * most) / std::sqrt(group.least_self);
}

double KernelRounding::ScaledOf(const double* x, double squared_norm, double self) const {
  PHIMAP_CHECK(of_shares_);
  const std::vector<RoundedValue> factors = FactorsOf(x, squared_norm);
  const double l1_norm = L1NormOf(x);
  double worst = 0;
  for (const Group& group : groups_) {
    worst = std::max(worst, ScaledOver(x, squared_norm, self, l1_norm, factors, group));
  }
  return worst;
}

double KernelRounding::LargestShare(ConstMatrixView<double> rows,
                                    const std::vector<double>& self) const {
  // The pairs of a small group are cheap to check one by one, so even a slightly loose bound is
  // reason enough to do so. The pairs of a large group are checked only if the bound of the group
  // says almost nothing.
  constexpr size_t kFewMembers = 64;
  constexpr double kLooseOfFew = 0x1p-44;
  constexpr double kLooseOfMany = 0x1p-13;
  const std::vector<double> norms = SquaredNorms(rows);
  double worst = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const std::vector<RoundedValue> factors = FactorsOf(rows.row(i), norms[i]);
    const double l1_norm = L1NormOf(rows.row(i));
    for (const Group& group : groups_) {
      const double share =
          ScaledOver(rows.row(i), norms[i], self[i], l1_norm, factors, group) / std::sqrt(self[i]);
      const bool few = group.members.size() <= kFewMembers;
      if (!(unit_ * share > (few ? kLooseOfFew : kLooseOfMany))) {
        worst = std::max(worst, share);
        continue;
      }
      for (const int64_t j : group.members) {
        if (j == i) continue;  // SelfError bounds the error of K(x, x)
        worst = std::max(worst, ShareOfPair(rows.row(i), self[i], rows.row(j), self[j]));
      }
    }
  }
  return worst;
}

double KernelRounding::ShareOfPair(const double* x, double self_x, const double* y,
                                   double self_y) const {
  const ConstMatrixView<double> one(y, 1, columns_);
  const std::vector<double> norm_y = SquaredNorms(one);
  const double norm_x = SquaredNorms(ConstMatrixView<double>(x, 1, columns_))[0];
  const Group group = GroupOfShares(one, norm_y, {self_y}, {0});
  RoundedOperands pair = PairOperands(x, norm_x, L1NormOf(x), FactorsOf(x, norm_x), group);
  if (program_.strings().empty()) {
    double square = 0;
    for (int64_t k = 0; k < columns_; ++k) square += (x[k] - y[k]) * (x[k] - y[k]);
    const double spread = unit_ * pair.squared_distance.absolute + 8 * unit_ * square;
    pair.squared_distance.low = std::max(0.0, square - spread);
    pair.squared_distance.high = square + spread;
  }
  const RoundedValue value = CarryRounding(program_.ops(), pair, unit_, underflow_);
  const double most = std::min(std::sqrt(self_x) * std::sqrt(self_y), value.magnitude());
  return (value.absolute + value.relative * most) / std::sqrt(self_x) / std::sqrt(self_y);
}

double KernelRounding::SelfError(const double* x, double squared_norm) const {
  PHIMAP_CHECK(of_shares_);
  RoundedOperands self = SelfOperands(x, squared_norm);
  for (const RoundedValue& factor : FactorsOf(x, squared_norm)) {
    self.factors.push_back(RoundedProduct(factor, factor));
  }
  return CarryRounding(program_.ops(), self, unit_, underflow_).error();
}

}  // namespace phimap
