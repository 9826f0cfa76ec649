// Bounds on the error of kernel values that are computed in a serving type. The rounding error of
// each operation of a program is carried through the operations after it.
//
// A fixed number of roundings would not be a bound for all kernels. A power of degree q multiplies
// a relative error by q. exp multiplies an absolute error by the value of exp. In a squared
// distance, most of the two norms cancels, but their errors remain.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_
#define PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_

#include <limits>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/kernel/rounded_value.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Returns the error of the result of `ops`, given the errors of the operands, to first order in the
// unit round-off u. If the error could exceed the number itself, it is returned as infinite, unless
// the number is bounded in another way. RoundingUnit explains `unit` and `underflow`.
RoundedValue CarryRounding(const std::vector<KernelOp>& ops, const RoundedOperands& operands,
                           double unit, double underflow = 0);

// Bounds the error |k̂(x, a_j) − K(x, a_j)| of computed kernel values k̂ over all rows a_j of a
// plan, for one x. `unit` is u, the unit round-off of the type in which k̂ is computed. The
// roundings of a chain are assumed to be independent. A sum of p products of numbers of the same
// sign then has a relative error of u·√(p/3). The bound allows for twice that, and at least 4u.
class KernelRounding {
 public:
  // `rows`: the plan's rows after the input stage, r×p with r ≥ 1; for strings, each row holds
  // k_m(a, a) for each string kernel m. Cost: r times the operations of the factors and forms.
  KernelRounding(const KernelProgram& program, ConstMatrixView<double> rows, double unit);

  // Returns bounds for ScaledOf, SelfError and LargestShare. `self` holds K(a, a) of each row,
  // which must be positive. The errors of ScaledOf and LargestShare are relative to √K(a, a). For
  // SelfError alone `rows` may be empty.
  static KernelRounding OfShares(const KernelProgram& program, ConstMatrixView<double> rows,
                                 const std::vector<double>& self, double unit);

  // Returns the bound for x, divided by u. `largest` is the largest |K(x, a_j)|. Cost: the
  // operations of the program, or eight times that for a kernel with factors. L1 distances, column
  // sums and factors also read the `columns` numbers of x.
  double Of(const double* x, double squared_norm, double largest) const;

  // Returns a bound on max_j |k̂(x, a_j) − K(x, a_j)|/√K(a_j, a_j), divided by u. `self` is K(x,
  // x). Assumes that |K(x, a_j)| is at most √(K(x, x)·K(a_j, a_j)). REQUIRES: made by OfShares.
  //
  // Cost: that of Of for each group of rows. The K(a, a) of the rows of a group are in the same one
  //       of up to 48 ranges, and their norms in the same range of norms. A range of norms spans a
  //       factor of 4, except that the range around 1 spans 0.35 to 4.
  double ScaledOf(const double* x, double squared_norm, double self) const;

  // Returns a bound on |k̂(x, x) − K(x, x)|, divided by u. REQUIRES: OfShares.
  double SelfError(const double* x, double squared_norm) const;

  // Returns a bound on the largest |k̂(a_i, a_j) − K(a_i, a_j)|/√(K(a_i, a_i)·K(a_j, a_j)) over all
  // pairs i ≠ j, divided by u. `rows` and `self` are those given to OfShares. If the bound of a
  // group is loose, each pair of the group is bounded on its own, with its own distance. This
  // happens for rows that are far from all others. Cost: that of ScaledOf for each row, and one
  // value per pair in groups with a loose bound.
  double LargestShare(ConstMatrixView<double> rows, const std::vector<double>& self) const;

 private:
  // A group of rows of nearly equal norm, or of nearly equal K(a, a) and norm. Holds the largest
  // and the least value of each quantity that enters the bound.
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
  // Returns LargestShare for one pair of rows, computed from their own distance.
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
  // RoundingUnit::underflow; 0 for old plans, whose bounds leave underflow out.
  double underflow_ = 0;
  // Error of a sum of products over the columns, divided by u.
  double sum_ = 0;
  std::vector<Group> groups_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_
