// log(1 + t), t ≥ 0.
#ifndef PHIMAP_CORE_KERNEL_OP_LOGARITHM_FACTS_
#define PHIMAP_CORE_KERNEL_OP_LOGARITHM_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

template <>
struct OpFacts<KernelOpCode::kLogOnePlus> : UnaryFacts {
  static constexpr absl::string_view kName = "log_one_plus";
  // The slope is 1/(1 + t), and t/(1 + t) is at most log(1 + t).
  static RoundedValue Round(const KernelOp&, const RoundedValue& t, const RoundingUnit&) {
    const double low = std::max(0.0, t.low);
    return {std::log1p(low), std::log1p(std::max(low, t.high)), t.absolute / (1 + low),
            t.relative + kFunctionRoundings};
  }
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_LOGARITHM_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_LOGARITHM_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_LOGARITHM_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_LOGARITHM_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_LOGARITHM_BODIES_
#endif

#include "core/kernel/op/op_body-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

template <>
struct OpBody<KernelOpCode::kLogOnePlus> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp&, V t) {
    return hn::Log1p(d, t);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
