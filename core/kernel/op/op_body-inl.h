// The computation of an operation: OpBody<code>, which the operation's file specialises. It is
// compiled once for each vector target.
#if defined(PHIMAP_CORE_KERNEL_OP_OP_BODY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_OP_BODY_INL_H_
#undef PHIMAP_CORE_KERNEL_OP_OP_BODY_INL_H_
#else
#define PHIMAP_CORE_KERNEL_OP_OP_BODY_INL_H_
#endif

#include <cstdint>

#include "core/kernel/kernel_evaluator.h"
#include "core/kernel/op/op_facts.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Elements that an operation processes before the next operation runs. They are so few that the
// stack stays in the first-level cache.
constexpr int64_t kChunk = 64;

// Each operation has the function of its arity:
//   kPush     template <typename T>
//             static void Push(const KernelOp&, const KernelOperands<T>&, int64_t begin, T* top);
//             writes kChunk elements of the operands, from `begin` on
//   kUnary    template <class D, class V> static V Apply(D, const KernelOp&, V t);
//   kBinary   template <class V> static V Apply(V t, V u);
//   kPair     template <class D, class V> static V Apply(D, const KernelOp&, V t, V& second);
template <KernelOpCode>
struct OpBody;

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
