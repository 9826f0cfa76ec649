// tanh t.
#ifndef PHIMAP_CORE_KERNEL_OP_TANH_FACTS_
#define PHIMAP_CORE_KERNEL_OP_TANH_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

template <>
struct OpFacts<KernelOpCode::kTanh> : UnaryFacts {
  static constexpr absl::string_view kName = "tanh";
  // The slope is at most 1, and so is t·tanh'(t)/tanh(t).
  static RoundedValue Round(const KernelOp&, const RoundedValue& t, const RoundingUnit&) {
    return {std::tanh(t.low), std::tanh(t.high), t.absolute, t.relative + kFunctionRoundings};
  }
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_TANH_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_TANH_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_TANH_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_TANH_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_TANH_BODIES_
#endif

#include "core/kernel/op/op_body-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

template <>
struct OpBody<KernelOpCode::kTanh> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp&, V t) {
    return hn::Tanh(d, t);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
