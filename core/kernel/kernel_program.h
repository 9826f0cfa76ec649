// The compiled form of a kernel expression: a short list of vector operations on a tile of
// products.
//
// The program is postfix: operations push to and pop from a stack of vectors, one element for each
// column of the tile. What it reads is the product x·a_j and, if it wants distances, ‖x‖² and
// ‖a_j‖². It is what plans store, so opcodes are numbers of the artifact format and are never
// reused.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_PROGRAM_H_
#define PHIMAP_CORE_KERNEL_KERNEL_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"

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

class KernelProgram {
 public:
  // The identity: the products themselves.
  KernelProgram() : ops_{KernelOp{}} {}
  // The program of an expression without unresolved parameters.
  static KernelProgram Compile(const KernelExpression& expression);
  // A program from untrusted operations. DATA_LOSS when the stack would underflow, grow over
  // kMaxKernelStack or not end with one element, or a number is not finite.
  static absl::StatusOr<KernelProgram> FromOps(std::vector<KernelOp> ops);

  const std::vector<KernelOp>& ops() const { return ops_; }
  bool uses_norms() const { return uses_norms_; }
  bool is_identity() const { return ops_.size() == 1 && !uses_norms_; }
  // The programs that the evaluator runs fused; the operations say the same.
  enum class Shape { kAny, kRbf, kPolynomial };
  Shape shape() const { return shape_; }
  friend bool operator==(const KernelProgram& a, const KernelProgram& b) {
    return a.ops_ == b.ops_;
  }

 private:
  std::vector<KernelOp> ops_;
  bool uses_norms_ = false;
  Shape shape_ = Shape::kAny;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_PROGRAM_H_
