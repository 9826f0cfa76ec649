// Roots, inverses, and the test for 0.
#ifndef PHIMAP_CORE_KERNEL_OP_ROOT_FACTS_
#define PHIMAP_CORE_KERNEL_OP_ROOT_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

template <>
struct OpFacts<KernelOpCode::kIsZero> : UnaryFacts {
  static constexpr absl::string_view kName = "is_zero";
  // Equal rows give exactly 0. The bound ignores different rows whose distance is rounded to 0.
  static RoundedValue Round(const KernelOp&, const RoundedValue& t, const RoundingUnit&) {
    return {t.low == 0 && t.high == 0 ? 1.0 : 0.0, t.low <= 0 && t.high >= 0 ? 1.0 : 0.0, 0, 0};
  }
};

template <>
struct OpFacts<KernelOpCode::kSquareRoot> : UnaryFacts {
  static constexpr absl::string_view kName = "square_root";
  static RoundedValue Round(const KernelOp&, const RoundedValue& t, const RoundingUnit& in) {
    const double low = std::sqrt(std::max(0.0, t.low));
    // √(t + δ) − √t is at most δ/(2√t), and √δ where t can be 0.
    const double absolute = t.absolute == 0 ? 0
                            : low > 0       ? t.absolute / (2 * low)
                                            : std::sqrt(t.absolute / in.unit);
    return {low, std::sqrt(std::max(0.0, t.high)), absolute, t.relative / 2 + 1};
  }
};

template <>
struct OpFacts<KernelOpCode::kInverse> : UnaryFacts {
  static constexpr absl::string_view kName = "inverse";
  static RoundedValue Round(const KernelOp&, const RoundedValue& t, const RoundingUnit& in) {
    // If the error can be half of the number, nothing is known of its inverse.
    const bool is_lost = in.underflow > 0 && !(in.unit * t.absolute < t.low / 2);
    if (is_lost || !(t.low > 0)) return RoundedValue::Unknown();
    return {1 / t.high, 1 / t.low, 0, t.relative + t.absolute / t.low + 1};
  }
};

template <>
struct OpFacts<KernelOpCode::kInverseOrZero> : UnaryFacts {
  static constexpr absl::string_view kName = "inverse_or_zero";
  // An exact 0 stays exact.
  static RoundedValue Round(const KernelOp& op, const RoundedValue& t, const RoundingUnit& in) {
    return t.is_exactly_zero() ? RoundedValue::Exactly(0)
                               : OpFacts<KernelOpCode::kInverse>::Round(op, t, in);
  }
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_ROOT_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_ROOT_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_ROOT_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_ROOT_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_ROOT_BODIES_
#endif

#include "core/kernel/op/op_body-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

template <>
struct OpBody<KernelOpCode::kIsZero> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp&, V t) {
    return hn::IfThenElseZero(hn::Eq(t, hn::Zero(d)), hn::Set(d, hn::TFromD<D>{1}));
  }
};

template <>
struct OpBody<KernelOpCode::kSquareRoot> {
  template <class D, class V>
  static HWY_INLINE V Apply(D, const KernelOp&, V t) {
    return hn::Sqrt(t);
  }
};

template <>
struct OpBody<KernelOpCode::kInverse> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp&, V t) {
    const V one = hn::Set(d, hn::TFromD<D>{1});
    return hn::IfThenElse(hn::Gt(t, hn::Zero(d)), hn::Div(one, t), hn::NaN(d));
  }
};

template <>
struct OpBody<KernelOpCode::kInverseOrZero> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp&, V t) {
    const V one = hn::Set(d, hn::TFromD<D>{1});
    return hn::IfThenElseZero(hn::Gt(t, hn::Zero(d)), hn::Div(one, t));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
