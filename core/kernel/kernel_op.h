// The operations of kernel programs, as plans store them.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_OP_H_
#define PHIMAP_CORE_KERNEL_KERNEL_OP_H_

#include <cstdint>

namespace phimap {

// X(name, code): all operations, in the order of their codes. Codes are numbers of the artifact
// format and are never reused. core/kernel/op has the properties and the computation of each
// operation.
#define PHIMAP_KERNEL_OPS(X)                                                               \
  X(kPushProduct, 1)         /* push x·a_j */                                             \
  X(kPushSquaredDistance, 2) /* push max(0, (‖x‖² + ‖a_j‖²) − 2 x·a_j) */     \
  X(kAffine, 3)              /* t ← fma(t, a, b) */                                      \
  X(kScale, 4)               /* t ← t · a */                                            \
  X(kPower, 5)               /* t ← t^n by squaring, n ≥ 1 */                          \
  X(kExp, 6)                 /* t ← exp(t) */                                            \
  X(kAdd, 7)                 /* pop u; t ← t + u */                                      \
  X(kMultiply, 8)            /* pop u; t ← t · u */                                     \
  X(kCos, 9)                 /* t ← cos(t); NaN for |t| > 39,000 */                      \
  X(kSin, 10)                /* t ← sin(t); NaN for |t| > 39,000 */                      \
  X(kPushShiftedProduct, 11) /* push x·a_j + b_j */                                       \
  X(kCosTurns, 12)           /* t ← a·cos 2πt; op/turns-inl.h has its range */         \
  X(kCosSinTurns, 13)        /* t ← a·cos 2πt; push a·sin 2πt. The last operation */ \
  X(kPushL1Distance, 20)     /* push ‖x − a_j‖₁ */                                 \
  X(kPushForm, 21)           /* push x·A_n a_j */                                         \
  X(kPushFactor, 22)         /* push f_n(x)·f_n(a_j) */                                   \
  X(kTanh, 23)               /* t ← tanh(t) */                                           \
  X(kIsZero, 24)             /* t ← 1 if t = 0, else 0 */                                \
  X(kSquareRoot, 25)         /* t ← √t */                                              \
  X(kInverse, 26)            /* t ← 1/t for t > 0, NaN otherwise */                      \
  X(kInverseOrZero, 27)      /* t ← 1/t for t > 0, 0 otherwise */                        \
  X(kPushString, 28)         /* push k_n(x, a_j), the n-th kernel of strings */            \
  X(kMatern, 29)             /* t ← the Matérn function of order n/2 of √t */         \
  X(kLogOnePlus, 30)         /* t ← log(1 + t), t ≥ 0 */                               \
  X(kPushColumnSum, 31)      /* push the (n − forms)-th sum over columns of x and a_j */

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

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_OP_H_
