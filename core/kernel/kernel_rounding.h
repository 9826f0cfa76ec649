// How far kernel values are off when they are computed in a serving type: the rounding of each
// operation of a program, carried through those that follow.
//
// A power of degree q multiplies a relative error by q, exp an absolute one by its own value, a
// squared distance cancels what is left of two norms: no one number of roundings covers all
// kernels.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_
#define PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_

#include <limits>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"

namespace phimap {

// A number within low … high whose computed value is off by at most u·(absolute + relative·|it|),
// u the unit round-off.
struct RoundedValue {
  double low = 0;
  double high = 0;
  double absolute = 0;
  double relative = 0;

  double magnitude() const;
  // What it can be off by at most, over u.
  double error() const { return absolute + relative * magnitude(); }
};

// What a program reads, as KernelOperands.
struct RoundedOperands {
  RoundedValue product;
  RoundedValue squared_distance;
  RoundedValue l1_distance;
  std::vector<RoundedValue> forms;
  // f_m(x)·f_m(a).
  std::vector<RoundedValue> factors;
};

// What `ops`, one result, leave of the operands, to first order in u. An error that outgrows the
// number itself is infinite where nothing else bounds it. `underflow`: what an operation loses at
// most of a number that is too small for the type, over u; 0 does not count it.
RoundedValue CarryRounding(const std::vector<KernelOp>& ops, const RoundedOperands& operands,
                           double unit, double underflow = 0);

// Bounds |k̂(x, a_j) − K(x, a_j)| over all rows a_j of a plan, for one x. The roundings of a chain
// are taken for independent of each other: a sum of p products of numbers of one sign errs by
// u·√(p/3) of itself then, twice which is what counts here, and never less than 4u.
class KernelRounding {
 public:
  // For a plan's rows, r×p, r ≥ 1, after the input stage; of strings, a row is k_m(a, a) of each
  // kernel of strings. Cost: r times the operations of the factors and forms.
  KernelRounding(const KernelProgram& program, ConstMatrixView<double> rows, double unit);

  // The same for ScaledOf: errors are compared with each row's own K(a, a), `self`, of which every
  // one is over 0. There may be no rows, for SelfError.
  static KernelRounding OfShares(const KernelProgram& program, ConstMatrixView<double> rows,
                                 const std::vector<double>& self, double unit);

  // The bound over u. `largest`: what |K(x, a_j)| is at most. Cost: the operations, for a kernel
  // with factors eight times; L1 distances and forms read x, `columns` numbers.
  double Of(const double* x, double squared_norm, double largest) const;

  // max_j |k̂(x, a_j) − K(x, a_j)|/√K(a_j, a_j) over u, at most; `self` is K(x, x), and |K(x, a_j)|
  // at most √(K(x, x)·K(a_j, a_j)). REQUIRES: OfShares. Cost: as Of, for each group of rows of
  // nearly the same K(a, a), at most 49, and of norms that differ by less than a factor of 4.
  double ScaledOf(const double* x, double squared_norm, double self) const;

  // |k̂(x, x) − K(x, x)| over u, at most. REQUIRES: OfShares.
  double SelfError(const double* x, double squared_norm) const;

  // max |k̂(a_i, a_j) − K(a_i, a_j)|/√(K(a_i, a_i)·K(a_j, a_j)) over u, i ≠ j, at most. `rows` and
  // `self` are those of OfShares. Where the bound of a group is loose, as it is for rows far from
  // all others, its pairs are looked at one by one, with their own distances. Cost: as ScaledOf for
  // each row; of such groups a value for each pair.
  double LargestShare(ConstMatrixView<double> rows, const std::vector<double>& self) const;

 private:
  // Rows of nearly the same norm, or of nearly the same K(a, a), and the largest, and least, of
  // what enters the bound.
  struct Group {
    double norm = 0;
    double least_norm = std::numeric_limits<double>::infinity();
    double l1_norm = 0;
    std::vector<double> form_norms;   // ‖A_m a‖; of strings √k_m(a, a)
    std::vector<double> form_errors;  // ‖|A_m|·|a|‖, which the rounding of A_m a goes by
    std::vector<RoundedValue> factors;
    double self = 0;
    double least_self = std::numeric_limits<double>::infinity();
    std::vector<int64_t> members;
  };

  KernelRounding(const KernelProgram& program, int64_t columns, double unit, bool of_shares);
  RoundedOperands SelfOperands(const double* x, double squared_norm) const;
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
  // The same of one pair of rows over √(K(x, x)·K(y, y)), by its own distance.
  double ShareOfPair(const double* x, double self_x, const double* y, double self_y) const;
  Group GroupOfShares(ConstMatrixView<double> rows, const std::vector<double>& norms,
                      const std::vector<double>& self, const std::vector<int64_t>& members) const;

  KernelProgram program_;
  int64_t columns_ = 0;
  double unit_ = 0;
  // Whether forms are bounded by what they are summed from, not by their value: only so does the
  // bound hold of rows that a form takes to nearly 0. Bounds of plans of old count the value.
  bool of_shares_ = false;
  // Of CarryRounding; bounds of plans of old do not count it.
  double underflow_ = 0;
  // Of a sum of products over the columns, over u.
  double sum_ = 0;
  std::vector<Group> groups_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_ROUNDING_H_
