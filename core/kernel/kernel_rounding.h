// Bounds on the error of kernel values that are computed in a serving type. The rounding of each
// operation of a program is carried through the operations after it.
//
// A fixed number of roundings cannot cover all kernels: a power of degree q multiplies a relative
// error by q, exp multiplies an absolute error by its own value, and a squared distance cancels
// most of two norms.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_
#define PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_

#include <limits>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/kernel/rounded_value.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Returns the error of the result of `ops`, given the operands' errors, to first order in u. An
// error that exceeds the number itself is infinite unless something else bounds it. For `unit` and
// `underflow` see RoundingUnit.
RoundedValue CarryRounding(const std::vector<KernelOp>& ops, const RoundedOperands& operands,
                           double unit, double underflow = 0);

// Bounds |k̂(x, a_j) − K(x, a_j)| over all rows a_j of a plan, for one x. Assumes that the
// roundings of a chain are independent: a sum of p products of numbers of one sign then has a
// relative error of u·√(p/3). Counts twice that, and at least 4u.
class KernelRounding {
 public:
  // `rows`: the plan's rows after the input stage, r×p with r ≥ 1; for strings, each row holds
  // k_m(a, a) for each string kernel m. Cost: r times the operations of the factors and forms.
  KernelRounding(const KernelProgram& program, ConstMatrixView<double> rows, double unit);

  // Makes the bounds of ScaledOf, SelfError and LargestShare, whose errors are relative to each
  // row's own K(a, a). `self` holds these K(a, a), which must be positive. For SelfError alone
  // `rows` may be empty.
  static KernelRounding OfShares(const KernelProgram& program, ConstMatrixView<double> rows,
                                 const std::vector<double>& self, double unit);

  // Returns the bound divided by u. `largest`: the largest |K(x, a_j)|. Cost: the operations of the
  // program, eight times for a kernel with factors; L1 distances, column sums and factors also read
  // the `columns` numbers of x.
  double Of(const double* x, double squared_norm, double largest) const;

  // Returns a bound on max_j |k̂(x, a_j) − K(x, a_j)|/√K(a_j, a_j), divided by u. `self` is K(x,
  // x); |K(x, a_j)| counts as at most √(K(x, x)·K(a_j, a_j)). REQUIRES: OfShares. Cost: as Of, for
  // each group of rows. A group shares one of up to 48 ranges of K(a, a) and one range of norms,
  // which spans a factor of 4 (near 1: from 0.35 to 4).
  double ScaledOf(const double* x, double squared_norm, double self) const;

  // Returns a bound on |k̂(x, x) − K(x, x)|, divided by u. REQUIRES: OfShares.
  double SelfError(const double* x, double squared_norm) const;

  // Returns a bound on max |k̂(a_i, a_j) − K(a_i, a_j)|/√(K(a_i, a_i)·K(a_j, a_j)) for i ≠ j,
  // divided by u. `rows` and `self` are those given to OfShares. If the bound of a group is loose,
  // as for rows far from all others, checks the group's pairs one by one, with their own distances.
  // Cost: as ScaledOf for each row, and one value per pair in groups with a loose bound.
  double LargestShare(ConstMatrixView<double> rows, const std::vector<double>& self) const;

 private:
  // Rows of nearly equal norm, or of nearly equal K(a, a) and norm, and the largest and least of
  // the quantities that enter the bound.
  struct Group {
    double norm = 0;
    double least_norm = std::numeric_limits<double>::infinity();
    double l1_norm = 0;
    std::vector<double> form_norms;   // ‖A_m a‖; for strings √k_m(a, a)
    std::vector<double> form_errors;  // ‖|A_m|·|a|‖, which bounds the rounding of A_m a
    // Least and largest ColumnSum::SizeOf.
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
  // Returns operands that bound those of K(x, a) for every a of the group.
  RoundedOperands PairOperands(const double* x, double squared_norm, double l1_norm,
                               const std::vector<RoundedValue>& factors, const Group& group) const;
  double L1NormOf(const double* x) const;
  // Returns ScaledOf for one group.
  double ScaledOver(const double* x, double squared_norm, double self, double l1_norm,
                    const std::vector<RoundedValue>& factors, const Group& group) const;
  // Returns LargestShare for one pair of rows, bounded by their own distance.
  double ShareOfPair(const double* x, double self_x, const double* y, double self_y) const;
  Group GroupOfShares(ConstMatrixView<double> rows, const std::vector<double>& norms,
                      const std::vector<double>& self, const std::vector<int64_t>& members) const;

  KernelProgram program_;
  int64_t columns_ = 0;
  double unit_ = 0;
  // Whether the error of a form is bounded by the magnitudes of the terms of its sum, instead of by
  // its value. Only then does the bound hold for rows that a form maps to nearly 0. Bounds of old
  // plans use the value.
  bool of_shares_ = false;
  // RoundingUnit::underflow; 0 for old plans, whose bounds do not count it.
  double underflow_ = 0;
  // Error of a sum of products over the columns, divided by u.
  double sum_ = 0;
  std::vector<Group> groups_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_
