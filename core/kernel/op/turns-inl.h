// Cosines and sines of angles in turns. The fraction of a turn is exact, so reducing the angle to
// one turn has no error. For |t| > 2^20 (float32) or 2^48 (float64), few bits of the fraction are
// left. The results are then 0, which is the mean over an unknown angle.
#ifndef PHIMAP_CORE_KERNEL_OP_TURNS_FACTS_
#define PHIMAP_CORE_KERNEL_OP_TURNS_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

// The slope is taken as 1, although it can be 2π|a|. No kernel compiles to these operations, so
// nothing reads their bound.
struct TurnsFacts : UnaryFacts {
  static RoundedValue Round(const KernelOp&, const RoundedValue& t, const RoundingUnit&) {
    return {-1, 1, t.error() + kFunctionRoundings, 0};
  }
};

template <>
struct OpFacts<KernelOpCode::kCosTurns> : TurnsFacts {
  static constexpr absl::string_view kName = "cos_turns";
};

template <>
struct OpFacts<KernelOpCode::kCosSinTurns> : TurnsFacts {
  static constexpr absl::string_view kName = "cos_sin_turns";
  static constexpr OpArity kArity = OpArity::kPair;
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_TURNS_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_TURNS_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_TURNS_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_TURNS_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_TURNS_BODIES_
#endif

#include "core/kernel/op/op_body-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

// Constants for computing a·cos 2πt and a·sin 2πt. Let n = round(2t) and r = t − n/2. r is exact,
// and its size is at most 1/4. Then cos 2πt = (−1)ⁿ(1 − 2·sin² πr) and sin 2πt = (−1)ⁿ·2·sin πr·cos
// πr. Minimax polynomials in r² give sin πr and cos πr.
template <typename T>
struct Turns;
template <>
struct Turns<float> {
  // Adding 1.5 · 2^23 rounds to an integer, whose parity is the lowest bit.
  static constexpr float kMagic = 12582912.0f;
  static constexpr int kSignShift = 31;
  static constexpr float kLimit = 1048576.0f;  // 2^20
  static constexpr float kSine[] = {3.1415927410125732f, -5.167707920074463f, 2.5497610569000244f,
                                    -0.5890122056007385f};
  static constexpr float kCosine[] = {1.0f, -4.934788227081299f, 4.057578086853027f,
                                      -1.306134581565857f};
};
template <>
struct Turns<double> {
  static constexpr double kMagic = 6755399441055744.0;  // 1.5 · 2^52
  static constexpr int kSignShift = 63;
  static constexpr double kLimit = 281474976710656.0;  // 2^48
  static constexpr double kSine[] = {
      3.141592653589793,   -5.167712780049954,    2.550164039873266,     -0.5992645289321482,
      0.08214586894928065, -0.007370018312452235, 0.00046151442175439855};
  static constexpr double kCosine[] = {1.0,
                                       -4.934802200544679,
                                       4.058712126416747,
                                       -1.3352627688519185,
                                       0.23533063019094144,
                                       -0.025806885654211,
                                       0.0019294657587640683,
                                       -0.00010356753978168919};
};

template <class D, class V = hn::Vec<D>, typename T = hn::TFromD<D>, size_t kTerms>
HWY_INLINE V Polynomial(D d, V x, const T (&terms)[kTerms]) {
  V value = hn::Set(d, terms[kTerms - 1]);
  for (size_t i = kTerms - 1; i-- > 0;) value = hn::MulAdd(value, x, hn::Set(d, terms[i]));
  return value;
}

// Holds r, and the amplitude (−1)ⁿ·a, which is 0 for an angle beyond the limit.
template <class D, class V>
struct HalfAngle {
  V r;
  V amplitude;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE HalfAngle<D, V> HalveTurns(D d, V t, V a) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, Turns<T>::kMagic);
  const V shifted = hn::MulAdd(t, hn::Set(d, T{2}), magic);
  const V r = hn::NegMulAdd(hn::Sub(shifted, magic), hn::Set(d, T{0.5}), t);
  const V sign = hn::BitCast(d, hn::ShiftLeft<Turns<T>::kSignShift>(hn::BitCast(di, shifted)));
  const auto known = hn::Le(hn::Abs(t), hn::Set(d, Turns<T>::kLimit));
  return {r, hn::IfThenElseZero(known, hn::Xor(a, sign))};
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V CosTurns(D d, V t, V a) {
  using T = hn::TFromD<D>;
  const HalfAngle<D, V> half = HalveTurns(d, t, a);
  const V sine = hn::Mul(half.r, Polynomial(d, hn::Mul(half.r, half.r), Turns<T>::kSine));
  const V twice = hn::Mul(sine, hn::Add(half.amplitude, half.amplitude));
  return hn::NegMulAdd(twice, sine, half.amplitude);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V CosSinTurns(D d, V t, V a, V& sin) {
  using T = hn::TFromD<D>;
  const HalfAngle<D, V> half = HalveTurns(d, t, a);
  const V square = hn::Mul(half.r, half.r);
  const V sine = hn::Mul(half.r, Polynomial(d, square, Turns<T>::kSine));
  const V twice = hn::Mul(sine, hn::Add(half.amplitude, half.amplitude));
  sin = hn::Mul(twice, Polynomial(d, square, Turns<T>::kCosine));
  return hn::NegMulAdd(twice, sine, half.amplitude);
}

template <>
struct OpBody<KernelOpCode::kCosTurns> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp& op, V t) {
    return CosTurns(d, t, hn::Set(d, static_cast<hn::TFromD<D>>(op.a)));
  }
};

template <>
struct OpBody<KernelOpCode::kCosSinTurns> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp& op, V t, V& second) {
    return CosSinTurns(d, t, hn::Set(d, static_cast<hn::TFromD<D>>(op.a)), second);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
