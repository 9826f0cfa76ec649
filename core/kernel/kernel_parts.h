// Parts of a kernel program: its operations, as plans store them, the tables of parts that
// operations refer to by number, and the emitter that records both while a kernel is compiled.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_
#define PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/kernel/bilinear_form.h"
#include "core/kernel/column_sum.h"
#include "core/kernel/string_kernel.h"

namespace phimap {

// X(name, code) lists all operations, in the order of their codes. The codes are part of the
// artifact format and are never reused. The files in core/kernel/op define the properties and the
// computation of each operation.
#define PHIMAP_KERNEL_OPS(X)                                                           \
  X(kPushProduct, 1)         /* push x·a_j */                                         \
  X(kPushSquaredDistance, 2) /* push max(0, (‖x‖² + ‖a_j‖²) − 2 x·a_j) */ \
  X(kAffine, 3)              /* t ← fma(t, a, b) */                                  \
  X(kScale, 4)               /* t ← t · a */                                        \
  X(kPower, 5)               /* t ← t^n by squaring, n ≥ 1 */                      \
  X(kExp, 6)                 /* t ← exp(t) */                                        \
  X(kAdd, 7)                 /* pop u; t ← t + u */                                  \
  X(kMultiply, 8)            /* pop u; t ← t · u */                                 \
  X(kCos, 9)                 /* t ← cos(t); NaN for |t| > 39,000 */                  \
  X(kSin, 10)                /* t ← sin(t); NaN for |t| > 39,000 */                  \
  X(kPushShiftedProduct, 11) /* push x·a_j + b_j */                                   \
  X(kCosTurns, 12)           /* t ← a·cos 2πt; op/turns-inl.h has its range */     \
  X(kCosSinTurns, 13)        /* t ← a·cos 2πt; push a·sin 2πt. Must come last */ \
  X(kPushL1Distance, 20)     /* push ‖x − a_j‖₁ */                             \
  X(kPushForm, 21)           /* push x·A_n a_j */                                     \
  X(kPushFactor, 22)         /* push f_n(x)·f_n(a_j) */                               \
  X(kTanh, 23)               /* t ← tanh(t) */                                       \
  X(kIsZero, 24)             /* t ← 1 if t = 0, else 0 */                            \
  X(kSquareRoot, 25)         /* t ← √t */                                          \
  X(kInverse, 26)            /* t ← 1/t for t > 0, NaN otherwise */                  \
  X(kInverseOrZero, 27)      /* t ← 1/t for t > 0, 0 otherwise */                    \
  X(kPushString, 28)         /* push k_n(x, a_j), the n-th string kernel */            \
  X(kMatern, 29)             /* t ← the Matérn function of order n/2 of √t */     \
  X(kLogOnePlus, 30)         /* t ← log(1 + t), t ≥ 0 */                           \
  X(kPushColumnSum, 31)      /* push column sum number n − (number of forms) of x and a_j */

enum class KernelOpCode : uint8_t {
#define PHIMAP_ENUMERATOR(NAME, CODE) NAME = CODE,
  PHIMAP_KERNEL_OPS(PHIMAP_ENUMERATOR)
#undef PHIMAP_ENUMERATOR
};

struct KernelOp {
  KernelOpCode code = KernelOpCode::kPushProduct;
  double a = 0;
  double b = 0;
  int32_t n = 0;
  friend bool operator==(const KernelOp&, const KernelOp&) = default;
};

// Maximum depth of a program's stack, and maximum number of its operations. The parser admits 32
// levels of parentheses, so an expression has at most 33 levels. At each level, up to two values
// wait on the stack: a term of a sum and a factor of a product. The innermost operand comes on top.
// The depth is therefore at most 2·33 + 1.
inline constexpr int kMaxKernelStack = 67;
inline constexpr int kMaxKernelOps = 1024;
// Maximum numbers of different factors, forms and column sums. The maximum for forms applies to
// string kernels too. Operations of factors count towards kMaxKernelOps.
inline constexpr int kMaxKernelFactors = 16;
inline constexpr int kMaxKernelForms = 8;
inline constexpr int kMaxColumnSums = 8;
// Maximum of KernelProgram::form_count(): forms and column sums together, or kernels of strings.
inline constexpr int kMaxKernelFormCount = kMaxKernelForms + kMaxColumnSums;

struct KernelProgramParts {
  std::vector<KernelOp> ops;
  std::vector<std::vector<KernelOp>> factors;
  std::vector<BilinearForm> forms;
  // An operation refers to sums[m] by the number forms.size() + m.
  std::vector<ColumnSum> sums = {};
  // String kernels. A program that has them reads no products, distances or forms. Their values are
  // evaluated like the values of forms.
  std::vector<StringKernel> strings = {};
  friend bool operator==(const KernelProgramParts&, const KernelProgramParts&) = default;
};

// Returns OK, or DATA_LOSS (KERNEL_PROGRAM_INVALID) with the first limit of this file that the
// program exceeds, and the number that the program needs.
absl::Status CheckKernelSize(const KernelProgramParts& parts);

// Appends operations to one list, either the program's or a factor's. Equal factors, forms, column
// sums and string kernels get the same number.
class KernelEmitter {
 public:
  using Ops = std::vector<KernelOp>;

  // `parts` and `ops` must outlive the emitter.
  KernelEmitter(KernelProgramParts& parts, Ops& ops) : parts_(parts), ops_(ops) {}

  void Emit(KernelOp op) { ops_.push_back(op); }
  // Pushes f(x)·f(a_j), where f is the result of `factor`.
  void PushFactor(Ops factor) {
    Emit({.code = KernelOpCode::kPushFactor, .n = IndexOf(parts_.factors, std::move(factor))});
  }
  // Pushes x·Aa_j.
  void PushForm(BilinearForm form) {
    Emit({.code = KernelOpCode::kPushForm, .n = IndexOf(parts_.forms, std::move(form))});
  }
  // Returns an operation that pushes a column sum, to be passed to Emit or made part of a factor.
  KernelOp ColumnSumOp(ColumnSum sum) {
    return {.code = KernelOpCode::kPushColumnSum, .n = IndexOf(parts_.sums, std::move(sum))};
  }
  // Pushes the value of a string kernel.
  void PushString(StringKernel kernel) {
    Emit({.code = KernelOpCode::kPushString, .n = IndexOf(parts_.strings, kernel)});
  }

 private:
  template <typename Part>
  static int32_t IndexOf(std::vector<Part>& all, Part part) {
    const auto found = std::find(all.begin(), all.end(), part);
    const auto index = static_cast<int32_t>(found - all.begin());
    if (found == all.end()) all.push_back(std::move(part));
    return index;
  }

  KernelProgramParts& parts_;
  Ops& ops_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_
