// e^t.
#ifndef PHIMAP_CORE_KERNEL_OP_EXPONENTIAL_FACTS_
#define PHIMAP_CORE_KERNEL_OP_EXPONENTIAL_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

template <>
struct OpFacts<KernelOpCode::kExp> : UnaryFacts {
  static constexpr absl::string_view kName = "exp";
  // An error δ of t changes the result by e^{t+δ} − e^t = e^t(e^δ − 1).
  static RoundedValue Round(const KernelOp&, const RoundedValue& t, const RoundingUnit& in) {
    RoundedValue value{std::exp(t.low), std::exp(t.high), 0, kFunctionRoundings};
    double error = t.absolute;
    if (t.low == t.high || t.low >= 0) {
      error += t.relative * t.magnitude();
    } else {
      error += t.relative * std::max(0.0, t.high);
      value.absolute = t.relative * std::exp(-1.0);  // |t|e^t ≤ 1/e for t < 0
    }
    const double growth = std::expm1(in.unit * error) / in.unit;
    if (in.unit * error < 1) {
      value.relative = std::hypot(value.relative, growth);  // the two are independent
    } else {
      value.absolute += value.high / in.unit;  // no digit is correct, but the value is bounded
    }
    return value;
  }
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_EXPONENTIAL_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_EXPONENTIAL_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_EXPONENTIAL_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_EXPONENTIAL_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_EXPONENTIAL_BODIES_
#endif

#include "core/kernel/op/op_body-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

// Computes exp of float32 within 1 ULP. The argument is split as t = q·ln 2 + r with |r| ≤ ln 2 /
// 2. Then e^t = 2^q · (1 + r + r²·P(r)). The minimax polynomial P leaves an error of 3.1e-9. The
// function is part of arithmetic 1. It takes half the operations of Highway's Exp, because 2^q is
// one addition to the exponent. In return, results for t < -87 are 0, which is off by at most
// 1.7e-38.
//
// kInRange: |t| is known to be at most kExponential32Range. The bits are the same, with fewer
// operations.
constexpr float kExponential32Range = 87;

template <bool kInRange, class D, class V = hn::Vec<D>>
HWY_INLINE V Exponential32(D d, V t) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 · 2^23 rounds to an integer, which is then in the lowest bits.
  const V magic = hn::Set(d, 12582912.0f);
  const V shifted = hn::MulAdd(t, hn::Set(d, 1.44269504f), magic);
  const V q = hn::Sub(shifted, magic);
  const V high = hn::NegMulAdd(q, hn::Set(d, 0.693145752f), t);  // exact: 17 bits times 8
  const V r = hn::NegMulAdd(q, hn::Set(d, 1.42860677e-6f), high);
  V p = hn::MulAdd(hn::Set(d, 0.001381454f), r, hn::Set(d, 0.008368745f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.04166839f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16666521f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
  const V mantissa = hn::Add(hn::MulAdd(hn::Mul(p, r), r, r), hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const V value = hn::BitCast(d, hn::Add(hn::BitCast(di, mantissa), exponent));
  if constexpr (kInRange) return value;
  const V bounded = hn::IfThenElse(hn::Le(t, hn::Set(d, 88.7228394f)), value,
                                   hn::Add(t, hn::Set(d, HUGE_VALF)));  // and NaN stays NaN
  return hn::IfThenElse(hn::Lt(t, hn::Set(d, -kExponential32Range)), hn::Zero(d), bounded);
}

template <bool kInRange, class D, class V = hn::Vec<D>>
HWY_INLINE V Exponential(D d, V t) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return Exponential32<kInRange>(d, t);
  } else {
    // Highway's Exp turns NaN into 0, which would hide that an input has no kernel value.
    return hn::IfThenElse(hn::Eq(t, t), hn::Exp(d, t), t);
  }
}

template <>
struct OpBody<KernelOpCode::kExp> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp&, V t) {
    return Exponential<false>(d, t);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
