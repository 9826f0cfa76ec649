// Sums, products and powers.
#ifndef PHIMAP_CORE_KERNEL_OP_ARITHMETIC_FACTS_
#define PHIMAP_CORE_KERNEL_OP_ARITHMETIC_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

inline RoundedValue RoundedAffine(const RoundedValue& t, double a, double b) {
  // A relative error R of t changes at + b by R|at|, which is at most R(|at + b| + |b|).
  return RoundedValue::Between(a * t.low + b, a * t.high + b,
                               std::abs(a) * t.absolute + t.relative * std::abs(b), t.relative + 1);
}

template <>
struct OpFacts<KernelOpCode::kAffine> : UnaryFacts {
  static constexpr absl::string_view kName = "affine";
  static RoundedValue Round(const KernelOp& op, const RoundedValue& t, const RoundingUnit&) {
    return RoundedAffine(t, op.a, op.b);
  }
};

template <>
struct OpFacts<KernelOpCode::kScale> : UnaryFacts {
  static constexpr absl::string_view kName = "scale";
  static RoundedValue Round(const KernelOp& op, const RoundedValue& t, const RoundingUnit&) {
    return RoundedAffine(t, op.a, 0);
  }
};

template <>
struct OpFacts<KernelOpCode::kPower> : UnaryFacts {
  static constexpr absl::string_view kName = "power";
  static absl::string_view WhyInvalid(const KernelOp& op) {
    return op.n < 1 ? "the exponent of a power is less than 1" : "";
  }
  static RoundedValue Round(const KernelOp& op, const RoundedValue& t, const RoundingUnit&) {
    const int32_t n = op.n;
    const double most = std::pow(t.magnitude(), n);
    double low = std::min(std::pow(t.low, n), std::pow(t.high, n));
    if (n % 2 == 0 && t.low < 0 && t.high > 0) low = 0;
    const double slope = n * std::pow(t.magnitude(), n - 1);
    return {low, most, t.absolute > 0 ? slope * t.absolute : 0, n * (t.relative + 1)};
  }
};

template <>
struct OpFacts<KernelOpCode::kAdd> : BinaryFacts {
  static constexpr absl::string_view kName = "add";
  static RoundedValue Round(const RoundedValue& s, const RoundedValue& t) {
    return RoundedSum(s, t);
  }
};

template <>
struct OpFacts<KernelOpCode::kMultiply> : BinaryFacts {
  static constexpr absl::string_view kName = "multiply";
  static RoundedValue Round(const RoundedValue& s, const RoundedValue& t) {
    return RoundedProduct(s, t);
  }
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_ARITHMETIC_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_ARITHMETIC_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_ARITHMETIC_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_ARITHMETIC_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_ARITHMETIC_BODIES_
#endif

#include "core/kernel/op/op_body-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

// Computes t^n by squaring from the lowest bit up. The order of the multiplications depends on n
// alone.
template <class D, class V>
HWY_INLINE V Power(D d, V t, int32_t n) {
  V result = hn::Set(d, hn::TFromD<D>{1});
  bool first = true;
  for (;; n >>= 1, t = hn::Mul(t, t)) {
    if (n & 1) {
      result = first ? t : hn::Mul(result, t);
      first = false;
    }
    if (n == 1) return result;
  }
}

template <>
struct OpBody<KernelOpCode::kAffine> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp& op, V t) {
    using T = hn::TFromD<D>;
    return hn::MulAdd(t, hn::Set(d, static_cast<T>(op.a)), hn::Set(d, static_cast<T>(op.b)));
  }
};

template <>
struct OpBody<KernelOpCode::kScale> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp& op, V t) {
    return hn::Mul(t, hn::Set(d, static_cast<hn::TFromD<D>>(op.a)));
  }
};

template <>
struct OpBody<KernelOpCode::kPower> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp& op, V t) {
    return Power(d, t, op.n);
  }
};

template <>
struct OpBody<KernelOpCode::kAdd> {
  template <class V>
  static HWY_INLINE V Apply(V t, V u) {
    return hn::Add(t, u);
  }
};

template <>
struct OpBody<KernelOpCode::kMultiply> {
  template <class V>
  static HWY_INLINE V Apply(V t, V u) {
    return hn::Mul(t, u);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
