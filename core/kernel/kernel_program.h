// The compiled form of a kernel expression: a short list of vector operations on a tile of
// products.
//
// The program is postfix: operations push to and pop from a stack of vectors, one element for each
// row a_j of the feature stage. What it reads is the product x·a_j and, if it wants them, ‖x‖² and
// ‖a_j‖², an offset b_j, ‖x − a_j‖₁, products x·Aa_j with the bilinear forms A, and *factors*:
// functions f of one row, which enter as f(x)·f(a_j). A factor is a list of operations of its own,
// which reads K(x, x) in place of K(x, a_j): the product is ‖x‖², distances are 0, forms xᵀAx, and
// earlier factors f(x)². Each product and each factor is computed once, however often the
// expression names it.
//
// It leaves one number a row, or two: then the stage has twice as many features as rows, all first
// numbers before all second ones.
//
// It is what plans store, so opcodes are numbers of the artifact format and are never reused.
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
#include "core/kernel/string_kernel.h"

namespace phimap {

enum class KernelOpCode : uint8_t {
  kPushProduct = 1,          // push x·a_j
  kPushSquaredDistance = 2,  // push max(0, (‖x‖² + ‖a_j‖²) − 2 x·a_j)
  kAffine = 3,               // t ← fma(t, a, b)
  kScale = 4,                // t ← t · a
  kPower = 5,                // t ← t^n by squaring, n ≥ 1
  kExp = 6,                  // t ← exp(t)
  kAdd = 7,                  // pop u; t ← t + u
  kMultiply = 8,             // pop u; t ← t · u
  kCos = 9,                  // t ← cos(t); NaN for |t| > 39,000
  kSin = 10,                 // t ← sin(t); NaN for |t| > 39,000
  kPushShiftedProduct = 11,  // push x·a_j + b_j
  // Angles in turns, whose fraction is exact: there is nothing to reduce. 0 for |t| > 2^20
  // (float32) or 2^48, where little is left of the fraction: its mean over an unknown angle.
  kCosTurns = 12,        // t ← a·cos 2πt
  kCosSinTurns = 13,     // t ← a·cos 2πt; push a·sin 2πt. The last operation
  kPushL1Distance = 20,  // push ‖x − a_j‖₁
  kPushForm = 21,        // push x·A_n a_j
  kPushFactor = 22,      // push f_n(x)·f_n(a_j)
  kTanh = 23,            // t ← tanh(t)
  kIsZero = 24,          // t ← 1 if t = 0, else 0
  kSquareRoot = 25,      // t ← √t
  kInverse = 26,         // t ← 1/t for t > 0, NaN otherwise
  kInverseOrZero = 27,   // t ← 1/t for t > 0, 0 otherwise
  kPushString = 28,      // push k_n(x, a_j), the n-th kernel of strings
};

struct KernelOp {
  KernelOpCode code = KernelOpCode::kPushProduct;
  double a = 0;
  double b = 0;
  int32_t n = 0;
  friend bool operator==(const KernelOp&, const KernelOp&) = default;
};

// Deepest stack a program may need, and most operations it may have. The parser admits parentheses
// 32 deep; at each level a term of a sum and a factor of a product may wait, and the innermost
// operand comes on top: 2·33 + 1.
inline constexpr int kMaxKernelStack = 67;
inline constexpr int kMaxKernelOps = 1024;
// Most different factors and forms; the operations of factors count as the program's.
inline constexpr int kMaxKernelFactors = 16;
inline constexpr int kMaxKernelForms = 8;

struct KernelProgramParts {
  std::vector<KernelOp> ops;
  std::vector<std::vector<KernelOp>> factors;
  std::vector<BilinearForm> forms;
  // Of strings, in place of products, distances and forms. Their values are evaluated as forms'.
  std::vector<StringKernel> strings = {};
  friend bool operator==(const KernelProgramParts&, const KernelProgramParts&) = default;
};

class KernelProgram {
 public:
  // The identity: the products themselves.
  KernelProgram();
  // The program of an expression without unresolved parameters.
  static KernelProgram Compile(const KernelExpression& expression);
  // Whether an expression, resolved or not, stays within the bounds above; the parser asks.
  static absl::Status CheckCompiles(const KernelExpression& expression);
  // A program from untrusted operations. DATA_LOSS when the stack would underflow, grow over
  // kMaxKernelStack or not end with one element (two after kCosSinTurns), or a number is not
  // finite.
  static absl::StatusOr<KernelProgram> FromOps(std::vector<KernelOp> ops) {
    return FromParts({.ops = std::move(ops), .factors = {}, .forms = {}});
  }
  // As FromOps; DATA_LOSS also for a form that is not symmetric or has no columns, and a factor or
  // form that is named and not there.
  static absl::StatusOr<KernelProgram> FromParts(KernelProgramParts parts);

  const std::vector<KernelOp>& ops() const { return parts_->ops; }
  const std::vector<std::vector<KernelOp>>& factors() const { return parts_->factors; }
  const std::vector<BilinearForm>& forms() const { return parts_->forms; }
  const std::vector<StringKernel>& strings() const { return parts_->strings; }
  // Values beside products and distances that it reads of each pair: of forms, or of strings.
  size_t form_count() const { return parts_->forms.size() + parts_->strings.size(); }
  // KernelExpression::Over; null for a program that is not of a build.
  const std::shared_ptr<const std::vector<std::string>>& string_table() const { return table_; }
  KernelProgram Over(std::shared_ptr<const std::vector<std::string>> table) const {
    KernelProgram program = *this;
    program.table_ = std::move(table);
    return program;
  }
  // What must be computed before it runs; a factor needs norms and forms too.
  bool uses_products() const { return uses_products_; }
  bool uses_norms() const { return uses_norms_; }
  bool uses_l1_distances() const { return uses_l1_distances_; }
  bool uses_offsets() const { return uses_offsets_; }
  // Numbers it leaves for each row: 1 or 2.
  int results() const { return results_; }
  // Whether all there is beside the operations are products, norms and offsets.
  bool is_plain() const {
    return !uses_l1_distances_ && parts_->factors.empty() && form_count() == 0;
  }
  bool is_identity() const {
    return parts_->ops.size() == 1 && parts_->ops[0].code == KernelOpCode::kPushProduct;
  }
  // The programs that the evaluator runs fused; the operations say the same.
  enum class Shape { kAny, kRbf, kPolynomial, kPhase, kSinCos };
  Shape shape() const { return shape_; }
  friend bool operator==(const KernelProgram& a, const KernelProgram& b) {
    return *a.parts_ == *b.parts_;
  }

 private:
  // Shared: programs are copied freely.
  std::shared_ptr<const KernelProgramParts> parts_;
  std::shared_ptr<const std::vector<std::string>> table_;
  bool uses_products_ = true;
  bool uses_norms_ = false;
  bool uses_l1_distances_ = false;
  bool uses_offsets_ = false;
  int results_ = 1;
  Shape shape_ = Shape::kAny;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_PROGRAM_H_
