// The compiled form of a kernel expression: a short list of vector operations on a tile of
// products. Plans store it.
//
// The program is postfix. Operations push to and pop from a stack of vectors. Each vector has one
// element for each row a_j of the feature stage. For a row x, the operands of the program are
//   the product x·a_j;
//   ‖x‖² and ‖a_j‖², an offset b_j, and ‖x − a_j‖₁;
//   the products x·Aa_j with bilinear forms A;
//   column sums, and values of string kernels;
//   products f(x)·f(a_j) of *factors*, which are functions f of one row.
// All of these except the product x·a_j are optional.
//
// A factor has its own list of operations. They read the operands of K(x, x) instead of those of
// K(x, a_j): the product is ‖x‖², distances are 0, forms are xᵀAx, column sums are those of x with
// itself, and earlier factors are f(x)². Each product and each factor is computed once, even if the
// expression uses it several times.
//
// A program leaves one or two numbers per row a_j. If it leaves two, the stage has twice as many
// features as rows: first the first numbers of all rows, then the second numbers of all rows.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_PROGRAM_H_
#define PHIMAP_CORE_KERNEL_KERNEL_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernel/bilinear_form.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_parts.h"
#include "core/kernel/string_kernel.h"

namespace phimap {

class KernelProgram {
 public:
  // Makes the identity program, whose results are the products.
  KernelProgram();
  // Compiles an expression without unresolved parameters.
  static KernelProgram Compile(const KernelExpression& expression);
  // Returns OK if an expression, resolved or not, is within the limits of kernel_parts.h. The
  // parser calls it.
  static absl::Status CheckCompiles(const KernelExpression& expression);
  // Makes a program from untrusted operations. DATA_LOSS if the stack would underflow, grow over
  // kMaxKernelStack or not end with one element (two after kCosSinTurns), or if a parameter is
  // invalid or not finite. UNIMPLEMENTED for a code that this build does not know.
  static absl::StatusOr<KernelProgram> FromOps(std::vector<KernelOp> ops) {
    return FromParts({.ops = std::move(ops), .factors = {}, .forms = {}});
  }
  // Like FromOps. DATA_LOSS also for a form that is not symmetric or has no columns, for any other
  // invalid part, for too many parts, and for an operation that refers to a missing part.
  static absl::StatusOr<KernelProgram> FromParts(KernelProgramParts parts);

  const std::vector<KernelOp>& ops() const { return parts_->ops; }
  const std::vector<std::vector<KernelOp>>& factors() const { return parts_->factors; }
  const std::vector<BilinearForm>& forms() const { return parts_->forms; }
  const std::vector<StringKernel>& strings() const { return parts_->strings; }
  const std::vector<ColumnSum>& sums() const { return parts_->sums; }
  // Number of values per pair that the program reads in addition to products and distances:
  // bilinear forms followed by column sums, or string kernels.
  size_t form_count() const {
    return parts_->forms.size() + parts_->sums.size() + parts_->strings.size();
  }
  // The table of strings from KernelExpression::Over, with which builds evaluate string kernels.
  // Null in all other programs.
  const std::shared_ptr<const std::vector<std::string>>& string_table() const { return table_; }
  KernelProgram Over(std::shared_ptr<const std::vector<std::string>> table) const {
    KernelProgram program = *this;
    program.table_ = std::move(table);
    return program;
  }
  // Whether these operands must be computed before the program and its factors run.
  bool uses_products() const { return uses_products_; }
  bool uses_norms() const { return uses_norms_; }
  bool uses_l1_distances() const { return uses_l1_distances_; }
  bool uses_offsets() const { return uses_offsets_; }
  // Number of results per row a_j: 1 or 2.
  int results() const { return results_; }
  // Whether the program reads only products, norms and offsets.
  bool is_plain() const {
    return !uses_l1_distances_ && parts_->factors.empty() && form_count() == 0;
  }
  bool is_identity() const {
    return parts_->ops.size() == 1 && parts_->ops[0].code == KernelOpCode::kPushProduct;
  }
  // Shapes for which the evaluator has a fused loop, derived from the operations.
  enum class Shape { kAny, kRbf, kPolynomial, kPhase, kSinCos };
  Shape shape() const { return shape_; }
  friend bool operator==(const KernelProgram& a, const KernelProgram& b) {
    return *a.parts_ == *b.parts_;
  }

 private:
  // Shared, so that copies of a program are cheap.
  std::shared_ptr<const KernelProgramParts> parts_;
  std::shared_ptr<const std::vector<std::string>> table_;
  bool uses_products_ = true;
  bool uses_norms_ = false;
  bool uses_l1_distances_ = false;
  bool uses_offsets_ = false;
  int results_ = 1;
  Shape shape_ = Shape::kAny;
};

// Returns `program` with each Σ(x_k − a_k)² over whole rows replaced by ‖x‖² + ‖a‖² − 2x·a. The
// compiler emits such a sum only for matern(nu=0.5). Builds that did not emit it wrote the program
// that is returned, so a plan with either program is one of the same kernel. Kernel values differ
// in their rounding alone.
KernelProgram WithExpandedDistances(const KernelProgram& program);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_PROGRAM_H_
