// Cosines and sines of angles in radians.
#ifndef PHIMAP_CORE_KERNEL_OP_COSINE_FACTS_
#define PHIMAP_CORE_KERNEL_OP_COSINE_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

// The slope of a cosine or a sine is at most 1. No kernel compiles to these operations.
struct CosineFacts : UnaryFacts {
  static RoundedValue Round(const KernelOp&, const RoundedValue& t, const RoundingUnit&) {
    return {-1, 1, t.error() + kFunctionRoundings, 0};
  }
};

template <>
struct OpFacts<KernelOpCode::kCos> : CosineFacts {
  static constexpr absl::string_view kName = "cos";
};

template <>
struct OpFacts<KernelOpCode::kSin> : CosineFacts {
  static constexpr absl::string_view kName = "sin";
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_COSINE_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_COSINE_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_COSINE_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_COSINE_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_COSINE_BODIES_
#endif

#include "core/kernel/op/op_body-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

// Highway reduces arguments up to 39,000. Beyond that no digit would be correct, so the result is
// NaN.
template <bool kSine, class D, class V = hn::Vec<D>>
HWY_INLINE V Trigonometric(D d, V t) {
  using T = hn::TFromD<D>;
  const auto in_range = hn::Le(hn::Abs(t), hn::Set(d, T{39000}));
  const V value = kSine ? hn::Sin(d, t) : hn::Cos(d, t);
  return hn::IfThenElse(in_range, value, hn::NaN(d));
}

template <>
struct OpBody<KernelOpCode::kCos> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp&, V t) {
    return Trigonometric<false>(d, t);
  }
};

template <>
struct OpBody<KernelOpCode::kSin> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp&, V t) {
    return Trigonometric<true>(d, t);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
