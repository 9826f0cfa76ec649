// Error of kernel values that are computed in a serving type: the rounding of each operation of a
// program, carried through the following ones.
//
// A power of degree q multiplies a relative error by q, exp an absolute one by its own value, and a
// squared distance cancels most of two norms: no single number of roundings covers all kernels.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_
#define PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_

#include <limits>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/kernel/rounded_value.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Returns the error of the result of `ops` for the operands' errors, to first order in u. An error
// that exceeds the number itself is infinite unless something else bounds it.
RoundedValue CarryRounding(const std::vector<KernelOp>& ops, const RoundedOperands& operands,
                           double unit, double underflow = 0);

// Bounds |k̂(x, a_j) − K(x, a_j)| over all rows a_j of a plan, for one x. The roundings of a chain
// are assumed independent: a sum of p products of numbers of one sign then errs by u·√(p/3) of
// itself; twice this is counted here, and never less than 4u.
class KernelRounding {
 public:
  // For a plan's rows, r×p, r ≥ 1, after the input stage; for strings, a row is k_m(a, a) for each
  // string kernel m. Cost: r times the operations of the factors and forms.
  KernelRounding(const KernelProgram& program, ConstMatrixView<double> rows, double unit);

  // For ScaledOf, SelfError and LargestShare, whose errors are relative to each row's own K(a, a),
  // `self`, which must be positive. SelfError needs no rows.
  static KernelRounding OfShares(const KernelProgram& program, ConstMatrixView<double> rows,
                                 const std::vector<double>& self, double unit);

  // Returns the bound divided by u. `largest` is the largest |K(x, a_j)|. Cost: the operations,
  // eight times for a kernel with factors; L1 distances and forms read x, `columns` numbers.
  double Of(const double* x, double squared_norm, double largest) const;

  // Bound on max_j |k̂(x, a_j) − K(x, a_j)|/√K(a_j, a_j), divided by u; `self` is K(x, x), and
  // |K(x, a_j)| at most √(K(x, x)·K(a_j, a_j)). REQUIRES: OfShares. Cost: as Of, for each group of
  // rows of nearly the same K(a, a), at most 49, and of norms that differ by less than a factor of
  // 4.
  double ScaledOf(const double* x, double squared_norm, double self) const;

  // Bound on |k̂(x, x) − K(x, x)|, divided by u. REQUIRES: OfShares.
  double SelfError(const double* x, double squared_norm) const;

  // Bounds max |k̂(a_i, a_j) − K(a_i, a_j)|/√(K(a_i, a_i)·K(a_j, a_j)) for i ≠ j, divided by u.
  // `rows` and `self` are those of OfShares. If the bound of a group is loose, as for rows far from
  // all others, its pairs are checked one by one with their own distances. Cost: that of ScaledOf
  // for each row; for groups with a loose bound, a value for each pair.
  double LargestShare(ConstMatrixView<double> rows, const std::vector<double>& self) const;

 private:
  // Rows of nearly equal norm, or of nearly equal K(a, a), with the largest and smallest quantities
  // that enter the bound.
  struct Group {
    double norm = 0;
    double least_norm = std::numeric_limits<double>::infinity();
    double l1_norm = 0;
    std::vector<double> form_norms;   // ‖A_m a‖; of strings √k_m(a, a)
    std::vector<double> form_errors;  // ‖|A_m|·|a|‖, which the rounding of A_m a goes by
    // ColumnSum::SizeOf.
    std::vector<double> least_sums;
    std::vector<double> sums;
    std::vector<RoundedValue> factors;
    double self = 0;
    double least_self = std::numeric_limits<double>::infinity();
    std::vector<int64_t> members;
  };

  KernelRounding(const KernelProgram& program, int64_t columns, double unit, bool of_shares);
  RoundedOperands SelfOperands(const double* x, double squared_norm) const;
  RoundedValue SelfForm(const BilinearForm& form, const double* x, bool is_zero) const;
  std::vector<RoundedValue> FactorsOf(const double* x, double squared_norm) const;
  Group GroupOf(ConstMatrixView<double> rows, const std::vector<double>& norms,
                const std::vector<int64_t>& members) const;
  void WidenFactors(const std::vector<RoundedValue>& factors, Group& group) const;
  // K(x, a)'s operands for any a of the group.
  RoundedOperands PairOperands(const double* x, double squared_norm, double l1_norm,
                               const std::vector<RoundedValue>& factors, const Group& group) const;
  double L1NormOf(const double* x) const;
  // ScaledOf of one group.
  double ScaledOver(const double* x, double squared_norm, double self, double l1_norm,
                    const std::vector<RoundedValue>& factors, const Group& group) const;
  // Largest share of one pair of rows over √(K(x, x)·K(y, y)), by its own distance.
  double ShareOfPair(const double* x, double self_x, const double* y, double self_y) const;
  Group GroupOfShares(ConstMatrixView<double> rows, const std::vector<double>& norms,
                      const std::vector<double>& self, const std::vector<int64_t>& members) const;

  KernelProgram program_;
  int64_t columns_ = 0;
  double unit_ = 0;
  // Whether forms are bounded by the terms of their sum instead of their value. Only then does the
  // bound hold for rows that a form maps to nearly 0. Bounds of old plans use the value.
  bool of_shares_ = false;
  // Underflow for CarryRounding; bounds of old plans do not count it.
  double underflow_ = 0;
  // Error of a sum of products over the columns, divided by u.
  double sum_ = 0;
  std::vector<Group> groups_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_
