#include "core/kernel/kernel_evaluator.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/kernel_evaluator.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h, which includes this file once for each target.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Elements that an operation handles before the next one follows: the stack then stays in the
// first-level cache.
constexpr int64_t kChunk = 64;

// t^n by squaring from the lowest bit up; the order of the multiplications depends on n alone.
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

// exp of float32, a function of arithmetic 1, within 1 ULP: 2^q · (1 + r + r²·P(r)) for t = q·ln 2
// + r with |r| ≤ ln 2 / 2; the minimax P leaves 3.1e-9. Half the operations of Highway's, because
// 2^q is one addition to the exponent: results below 2^-126 are 0 from t = -87 on, which is off
// by 1.7e-38.
// kInRange: |t| is known to be at most kExponential32Range, and the same bits take fewer
// operations.
constexpr float kExponential32Range = 87;

template <bool kInRange, class D, class V = hn::Vec<D>>
HWY_INLINE V Exponential32(D d, V t) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 · 2^23 rounds to an integer, which then stands in the lowest bits.
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
    return hn::Exp(d, t);
  }
}

// The operations, one vector at a time; what the loops and the fused programs below share.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SquaredDistance(D d, V x_norm, V row_norm, V product) {
  // 2·product is exact, so that nothing is rounded twice with or without fused multiply-add.
  const auto two = hn::Set(d, hn::TFromD<D>{2});
  return hn::Max(hn::Zero(d), hn::NegMulAdd(two, product, hn::Add(x_norm, row_norm)));
}

// Highway reduces arguments up to 39,000; beyond that the digits are gone and NaN says so.
template <bool kSine, class D, class V = hn::Vec<D>>
HWY_INLINE V Trigonometric(D d, V t) {
  using T = hn::TFromD<D>;
  const auto in_range = hn::Le(hn::Abs(t), hn::Set(d, T{39000}));
  const V value = kSine ? hn::Sin(d, t) : hn::Cos(d, t);
  return hn::IfThenElse(in_range, value, hn::NaN(d));
}

// a·cos 2πt and a·sin 2πt with n = round(2t) and r = t − n/2, which is exact and at most 1/4:
// cos 2πt = (−1)ⁿ(1 − 2·sin² πr) and sin 2πt = (−1)ⁿ·2·sin πr·cos πr, minimax polynomials in r².
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

// r and (−1)ⁿ·a, 0 for an angle beyond the limit.
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

// Applies `f` to each vector of a chunk.
template <typename T, class F>
HWY_INLINE void ForEachVector(T* top, const F& f) {
  const hn::ScalableTag<T> d;
  for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) hn::Store(f(hn::Load(d, top + j)), d, top + j);
}

template <typename T>
HWY_INLINE void ApplyUnary(const KernelOp& op, T* top) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const V a = hn::Set(d, static_cast<T>(op.a));
  const V b = hn::Set(d, static_cast<T>(op.b));
  switch (op.code) {
    case KernelOpCode::kAffine:
      return ForEachVector(top, [&](V t) HWY_ATTR { return hn::MulAdd(t, a, b); });
    case KernelOpCode::kScale:
      return ForEachVector(top, [&](V t) HWY_ATTR { return hn::Mul(t, a); });
    case KernelOpCode::kPower:
      return ForEachVector(top, [&](V t) HWY_ATTR { return Power(d, t, op.n); });
    case KernelOpCode::kCos:
      return ForEachVector(top, [&](V t) HWY_ATTR { return Trigonometric<false>(d, t); });
    case KernelOpCode::kSin:
      return ForEachVector(top, [&](V t) HWY_ATTR { return Trigonometric<true>(d, t); });
    case KernelOpCode::kCosTurns:
      return ForEachVector(top, [&](V t) HWY_ATTR { return CosTurns(d, t, a); });
    case KernelOpCode::kTanh:
      return ForEachVector(top, [&](V t) HWY_ATTR { return hn::Tanh(d, t); });
    case KernelOpCode::kIsZero:
      return ForEachVector(top, [&](V t) HWY_ATTR {
        return hn::IfThenElseZero(hn::Eq(t, hn::Zero(d)), hn::Set(d, T{1}));
      });
    case KernelOpCode::kSquareRoot:
      return ForEachVector(top, [&](V t) HWY_ATTR { return hn::Sqrt(t); });
    case KernelOpCode::kInverse:
      return ForEachVector(top, [&](V t) HWY_ATTR {
        return hn::IfThenElse(hn::Gt(t, hn::Zero(d)), hn::Div(hn::Set(d, T{1}), t), hn::NaN(d));
      });
    case KernelOpCode::kInverseOrZero:
      return ForEachVector(top, [&](V t) HWY_ATTR {
        return hn::IfThenElseZero(hn::Gt(t, hn::Zero(d)), hn::Div(hn::Set(d, T{1}), t));
      });
    default:  // kExp: FromOps admits no other
      return ForEachVector(top, [&](V t) HWY_ATTR { return Exponential<false>(d, t); });
  }
}

template <typename T>
HWY_INLINE void ApplyBinary(const KernelOp& op, const T* u, T* t) {
  const hn::ScalableTag<T> d;
  for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
    const auto left = hn::Load(d, t + j);
    const auto right = hn::Load(d, u + j);
    hn::Store(op.code == KernelOpCode::kAdd ? hn::Add(left, right) : hn::Mul(left, right), d,
              t + j);
  }
}

template <typename T>
HWY_INLINE void PushSquaredDistance(const KernelOperands<T>& in, int64_t begin, T* top) {
  const hn::ScalableTag<T> d;
  if (in.row_norms == nullptr) {
    std::fill_n(top, kChunk, T{0});
    return;
  }
  const auto x_norm = hn::Set(d, in.x_norm);
  for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
    const auto value = SquaredDistance(d, x_norm, hn::LoadU(d, in.row_norms + begin + j),
                                       hn::LoadU(d, in.products + begin + j));
    hn::Store(value, d, top + j);
  }
}

template <typename T>
HWY_INLINE void PushShiftedProduct(const KernelOperands<T>& in, int64_t begin, T* top) {
  const hn::ScalableTag<T> d;
  if (in.offsets == nullptr) {
    std::copy_n(in.products + begin, kChunk, top);
    return;
  }
  for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
    hn::Store(hn::Add(hn::LoadU(d, in.products + begin + j), hn::LoadU(d, in.offsets + begin + j)),
              d, top + j);
  }
}

// cos in the place of the angle, sin in the chunk above it.
template <typename T>
HWY_INLINE void PushSine(const KernelOp& op, T* top) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const V a = hn::Set(d, static_cast<T>(op.a));
  for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
    V sin;
    const V cos = CosSinTurns(d, hn::Load(d, top + j), a, sin);
    hn::Store(cos, d, top + j);
    hn::Store(sin, d, top + kChunk + j);
  }
}

template <typename T>
HWY_INLINE void PushFactor(const KernelOperands<T>& in, int32_t factor, int64_t begin, T* top) {
  const hn::ScalableTag<T> d;
  const T* const rows = in.row_factors[factor] + begin;
  for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
    const auto row = hn::LoadU(d, rows + j);
    const auto x = in.x_factors == nullptr ? row : hn::Set(d, in.x_factors[factor]);
    hn::Store(hn::Mul(x, row), d, top + j);
  }
}

// The programs that nearly every plan has, one vector at a time, without a trip through memory
// between operations: the same operations on the same numbers, so the same bits.
//
// A map has two halves: the argument, made of the product and the other operands, and the function.
// kSecond: it has second results. kRange: with arguments of at most this size Apply<true> gives the
// same bits by fewer operations; 0 if there is nothing to save.
template <typename T>
struct RbfMap {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr bool kSecond = false;
  static constexpr T kRange = sizeof(T) == 4 ? static_cast<T>(kExponential32Range) : 0;
  explicit RbfMap(const KernelProgram& program)
      : minus_gamma(hn::Set(D(), static_cast<T>(program.ops()[1].a))) {}
  HWY_INLINE V Argument(const KernelOperands<T>& in, int64_t j, V product) const {
    const D d;
    const V distance =
        SquaredDistance(d, hn::Set(d, in.x_norm), hn::LoadU(d, in.row_norms + j), product);
    return hn::Mul(distance, minus_gamma);
  }
  template <bool kInRange>
  HWY_INLINE V Apply(V t, V&) const {
    return Exponential<kInRange>(D(), t);
  }
  const V minus_gamma;
};

template <typename T>
struct PolynomialMap {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr bool kSecond = false;
  static constexpr T kRange = 0;
  explicit PolynomialMap(const KernelProgram& program)
      : gamma(hn::Set(D(), static_cast<T>(program.ops()[1].a))),
        coef0(hn::Set(D(), static_cast<T>(program.ops()[1].b))),
        degree(program.ops()[2].n) {}
  HWY_INLINE V Argument(const KernelOperands<T>&, int64_t, V product) const {
    return hn::MulAdd(product, gamma, coef0);
  }
  template <bool kInRange>
  HWY_INLINE V Apply(V t, V&) const {
    return Power(D(), t, degree);
  }
  const V gamma;
  const V coef0;
  const int32_t degree;
};

template <typename T>
struct PhaseMap {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr bool kSecond = false;
  static constexpr T kRange = 0;
  explicit PhaseMap(const KernelProgram& program)
      : amplitude(hn::Set(D(), static_cast<T>(program.ops()[1].a))) {}
  HWY_INLINE V Argument(const KernelOperands<T>& in, int64_t j, V product) const {
    const D d;
    return hn::Add(product, hn::LoadU(d, in.offsets + j));
  }
  template <bool kInRange>
  HWY_INLINE V Apply(V t, V&) const {
    return CosTurns(D(), t, amplitude);
  }
  const V amplitude;
};

template <typename T>
struct SinCosMap {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr bool kSecond = true;
  static constexpr T kRange = 0;
  explicit SinCosMap(const KernelProgram& program)
      : amplitude(hn::Set(D(), static_cast<T>(program.ops()[1].a))) {}
  HWY_INLINE V Argument(const KernelOperands<T>&, int64_t, V product) const { return product; }
  template <bool kInRange>
  HWY_INLINE V Apply(V t, V& second) const {
    return CosSinTurns(D(), t, amplitude, second);
  }
  const V amplitude;
};

// A map on a chunk of operands.
template <class Map, typename T>
HWY_INLINE void RunMap(const KernelProgram& program, const KernelOperands<T>& in, int64_t begin,
                       T* out, T* second) {
  const hn::ScalableTag<T> d;
  const Map map(program);
  for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
    auto other = hn::Zero(d);
    const auto t = map.Argument(in, begin + j, hn::LoadU(d, in.products + begin + j));
    hn::StoreU(map.template Apply<false>(t, other), d, out + j);
    if constexpr (Map::kSecond) hn::StoreU(other, d, second + j);
  }
}

// Puts the arguments of the map in the place of a block's products. Returns whether all are within
// its range: the comparisons of each would take the unit of the multiply-adds, a maximum of
// integers takes another.
template <class Map, typename T>
HWY_INLINE bool SetArguments(const Map& map, const KernelBlockOperands<T>& in,
                             const ProductBlock<T>& block) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t first_row = block.first_row;
  const int64_t first_column = block.first_column;
  const int64_t columns = block.columns;
  const int64_t rows = block.rows;
  // Numbers other than NaN are ordered as the bits of their size, and NaN comes after them.
  auto largest = hn::Zero(di);
  KernelOperands<T> row{.row_norms = in.row_norms, .offsets = in.offsets};
  T* values = block.values;
  for (int64_t r = 0; r < rows; ++r, values += block.stride) {
    if (in.x_norms != nullptr) row.x_norm = in.x_norms[first_row + r];
    for (int64_t j = 0; j < columns; j += hn::Lanes(d)) {
      const auto t = map.Argument(row, first_column + j, hn::Load(d, values + j));
      largest = hn::Max(largest, hn::BitCast(di, hn::Abs(t)));
      hn::Store(t, d, values + j);
    }
  }
  const auto range = hn::BitCast(di, hn::Set(d, Map::kRange));
  return hn::AllFalse(di, hn::Gt(largest, range));
}

// A vector, or what is left of a row.
template <class D, class V, typename T>
HWY_INLINE void StoreSome(D d, V value, int64_t count, T* out) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(value, d, out);
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(value, d, buffer);
  std::copy_n(buffer, count, out);
}

// Writes the values of the map at the block's arguments (products, if the map has no range) to
// where they belong in `out`, second ones `count` numbers further. Returns their sum, which is not
// finite if one of them is not, or if the sum alone overflows.
template <class Map, bool kInRange, typename T>
HWY_INLINE T WriteValues(const Map& map, const KernelBlockOperands<T>& in,
                         const ProductBlock<T>& block, int64_t count, T* const* out) {
  const hn::ScalableTag<T> d;
  const int64_t first_column = block.first_column;
  const int64_t columns = block.columns;
  const int64_t rows = block.rows;
  T* const* const to = out + block.first_row;
  auto sum = hn::Zero(d);
  KernelOperands<T> row{.row_norms = in.row_norms, .offsets = in.offsets};
  const T* values = block.values;
  for (int64_t r = 0; r < rows; ++r, values += block.stride) {
    if (in.x_norms != nullptr) row.x_norm = in.x_norms[block.first_row + r];
    T* const first = to[r] + first_column;
    for (int64_t j = 0; j < columns; j += hn::Lanes(d)) {
      auto t = hn::Load(d, values + j);
      if constexpr (Map::kRange == 0) t = map.Argument(row, first_column + j, t);
      auto second = hn::Zero(d);
      const auto value = map.template Apply<kInRange>(t, second);
      sum = hn::Add(sum, value);
      StoreSome(d, value, columns - j, first + j);
      if constexpr (Map::kSecond) {
        sum = hn::Add(sum, second);
        StoreSome(d, second, columns - j, first + count + j);
      }
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class Map, typename T>
void MapBlock(const KernelProgram& program, const KernelBlockOperands<T>& in,
              const ProductBlock<T>& block, int64_t count, T* const* out, bool* finite) {
  const Map map(program);
  bool in_range = false;
  if constexpr (Map::kRange > 0) in_range = SetArguments(map, in, block);
  const T sum = in_range ? WriteValues<Map, true>(map, in, block, count, out)
                         : WriteValues<Map, false>(map, in, block, count, out);
  if (finite == nullptr || std::isfinite(sum)) return;
  for (int64_t i = block.first_row; i < block.first_row + block.rows; ++i) {
    const T* const row = out[i] + block.first_column;
    if (!AllFinite(row, block.columns) ||
        (Map::kSecond && !AllFinite(row + count, block.columns))) {
      finite[i] = false;
    }
  }
}

template <typename T>
void EvaluateBlock(const KernelProgram& program, const KernelBlockOperands<T>& in,
                   const ProductBlock<T>& block, int64_t count, T* const* out, bool* finite) {
  switch (program.shape()) {
    case KernelProgram::Shape::kRbf:
      return MapBlock<RbfMap<T>>(program, in, block, count, out, finite);
    case KernelProgram::Shape::kPolynomial:
      return MapBlock<PolynomialMap<T>>(program, in, block, count, out, finite);
    case KernelProgram::Shape::kPhase:
      return MapBlock<PhaseMap<T>>(program, in, block, count, out, finite);
    case KernelProgram::Shape::kSinCos:
      return MapBlock<SinCosMap<T>>(program, in, block, count, out, finite);
    case KernelProgram::Shape::kAny:
      PHIMAP_CHECK(false);
  }
}

void EvaluateBlockF32(const KernelProgram& program, const KernelBlockOperands<float>& in,
                      const ProductBlock<float>& block, int64_t count, float* const* out,
                      bool* finite) {
  EvaluateBlock(program, in, block, count, out, finite);
}

void EvaluateBlockF64(const KernelProgram& program, const KernelBlockOperands<double>& in,
                      const ProductBlock<double>& block, int64_t count, double* const* out,
                      bool* finite) {
  EvaluateBlock(program, in, block, count, out, finite);
}

// Runs the operations on elements begin … begin + kChunk − 1; the results are at the bottom of the
// stack.
template <typename T>
void RunChunk(const std::vector<KernelOp>& ops, const KernelOperands<T>& in, int64_t begin,
              T* stack) {
  T* top = stack - kChunk;
  for (const KernelOp& op : ops) {
    switch (op.code) {
      case KernelOpCode::kPushProduct:
        top += kChunk;
        std::copy_n(in.products + begin, kChunk, top);
        break;
      case KernelOpCode::kPushSquaredDistance:
        top += kChunk;
        PushSquaredDistance(in, begin, top);
        break;
      case KernelOpCode::kPushL1Distance:
        top += kChunk;
        if (in.l1_distances == nullptr) {
          std::fill_n(top, kChunk, T{0});
        } else {
          std::copy_n(in.l1_distances + begin, kChunk, top);
        }
        break;
      case KernelOpCode::kPushShiftedProduct:
        top += kChunk;
        PushShiftedProduct(in, begin, top);
        break;
      case KernelOpCode::kCosSinTurns:
        PushSine(op, top);
        top += kChunk;
        break;
      case KernelOpCode::kPushForm:
      case KernelOpCode::kPushString:
        top += kChunk;
        std::copy_n(in.forms[op.n] + begin, kChunk, top);
        break;
      case KernelOpCode::kPushFactor:
        top += kChunk;
        PushFactor(in, op.n, begin, top);
        break;
      case KernelOpCode::kAdd:
      case KernelOpCode::kMultiply:
        top -= kChunk;
        ApplyBinary(op, top + kChunk, top);
        break;
      default:
        ApplyUnary(op, top);
        break;
    }
  }
}

// One list of operations, with the shape of the program if it is the program's.
template <typename T>
struct Evaluation {
  const KernelProgram& program;
  const std::vector<KernelOp>& ops;
  KernelProgram::Shape shape;

  // Elements begin … begin + kChunk − 1 of the operands into out[0 … kChunk − 1], and second
  // results into `second`.
  HWY_INLINE void Run(const KernelOperands<T>& in, int64_t begin, T* stack, T* out,
                      T* second) const {
    switch (ShapeFor(in)) {
      case KernelProgram::Shape::kRbf:
        return RunMap<RbfMap<T>>(program, in, begin, out, second);
      case KernelProgram::Shape::kPolynomial:
        return RunMap<PolynomialMap<T>>(program, in, begin, out, second);
      case KernelProgram::Shape::kPhase:
        return RunMap<PhaseMap<T>>(program, in, begin, out, second);
      case KernelProgram::Shape::kSinCos:
        return RunMap<SinCosMap<T>>(program, in, begin, out, second);
      case KernelProgram::Shape::kAny:
        RunChunk(ops, in, begin, stack);
        std::copy_n(stack, kChunk, out);
        if (ops.back().code == KernelOpCode::kCosSinTurns)
          std::copy_n(stack + kChunk, kChunk, second);
    }
  }

  KernelProgram::Shape ShapeFor(const KernelOperands<T>& in) const {
    const bool lacks = (shape == KernelProgram::Shape::kRbf && in.row_norms == nullptr) ||
                       (shape == KernelProgram::Shape::kPhase && in.offsets == nullptr);
    return lacks ? KernelProgram::Shape::kAny : shape;
  }
};

// A copy of the last operands of a row, padded to a chunk: whole vectors only are loaded.
template <typename T>
struct PaddedOperands {
  PaddedOperands(const KernelProgram& program, const KernelOperands<T>& in, int64_t begin,
                 int64_t left) {
    const auto copy = [&](const T* from, T* to) {
      if (from == nullptr) return static_cast<const T*>(nullptr);
      std::copy_n(from + begin, left, to);
      std::fill(to + left, to + kChunk, T{0});
      return static_cast<const T*>(to);
    };
    operands = in;
    operands.products = copy(in.products, products);
    operands.row_norms = copy(in.row_norms, norms);
    operands.l1_distances = copy(in.l1_distances, l1_distances);
    operands.offsets = copy(in.offsets, offsets);
    if (in.forms != nullptr) {
      for (size_t m = 0; m < program.form_count(); ++m) {
        form_pointers[m] = copy(in.forms[m], forms + m * kChunk);
      }
      operands.forms = form_pointers;
    }
    if (in.row_factors != nullptr) {
      for (size_t m = 0; m < program.factors().size(); ++m) {
        factor_pointers[m] = copy(in.row_factors[m], factors + m * kChunk);
      }
      operands.row_factors = factor_pointers;
    }
  }

  KernelOperands<T> operands;
  T products[kChunk];
  T norms[kChunk];
  T l1_distances[kChunk];
  T offsets[kChunk];
  T forms[kMaxKernelForms * kChunk];
  T factors[kMaxKernelFactors * kChunk];
  const T* form_pointers[kMaxKernelForms];
  const T* factor_pointers[kMaxKernelFactors];
};

// Runs the program, or with factor ≥ 0 one of its factors.
template <typename T>
void Evaluate(const KernelProgram& program, int factor, const KernelOperands<T>& in, int64_t count,
              T* out) {
  HWY_ALIGN T stack[kMaxKernelStack * kChunk];
  const Evaluation<T> evaluation =
      factor < 0 ? Evaluation<T>{program, program.ops(), program.shape()}
                 : Evaluation<T>{program, program.factors()[static_cast<size_t>(factor)],
                                 KernelProgram::Shape::kAny};
  int64_t begin = 0;
  for (; begin + kChunk <= count; begin += kChunk) {
    evaluation.Run(in, begin, stack, out + begin, out + count + begin);
  }
  if (begin == count) return;
  const PaddedOperands<T> padded(program, in, begin, count - begin);
  T results[2][kChunk];
  evaluation.Run(padded.operands, 0, stack, results[0], results[1]);
  std::copy_n(results[0], count - begin, out + begin);
  if (factor < 0 && program.results() == 2) {
    std::copy_n(results[1], count - begin, out + count + begin);
  }
}

void EvaluateF32(const KernelProgram& program, int factor, const KernelOperands<float>& in,
                 int64_t count, float* out) {
  Evaluate(program, factor, in, count, out);
}

void EvaluateF64(const KernelProgram& program, int factor, const KernelOperands<double>& in,
                 int64_t count, double* out) {
  Evaluate(program, factor, in, count, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {

HWY_EXPORT(EvaluateF32);
HWY_EXPORT(EvaluateF64);
HWY_EXPORT(EvaluateBlockF32);
HWY_EXPORT(EvaluateBlockF64);

namespace {

void Evaluate(const KernelProgram& program, int factor, const KernelOperands<float>& operands,
              int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(EvaluateF32)(program, factor, operands, count, out);
}
void Evaluate(const KernelProgram& program, int factor, const KernelOperands<double>& operands,
              int64_t count, double* out) {
  HWY_DYNAMIC_DISPATCH(EvaluateF64)(program, factor, operands, count, out);
}

// What stands in the place of K(x, a_j) for K(x, x).
template <typename T>
KernelOperands<T> SelfOperands(const T* norms, const T* const* forms, const T* const* factors) {
  KernelOperands<T> operands;
  operands.products = norms;
  operands.forms = forms;
  operands.row_factors = factors;
  return operands;
}

}  // namespace

void EvaluateKernel(const KernelProgram& program, const KernelOperands<float>& operands,
                    int64_t count, float* out) {
  Evaluate(program, -1, operands, count, out);
}

void EvaluateKernel(const KernelProgram& program, const KernelOperands<double>& operands,
                    int64_t count, double* out) {
  Evaluate(program, -1, operands, count, out);
}

bool EvaluatesBlocks(const KernelProgram& program) {
  return program.shape() != KernelProgram::Shape::kAny;
}

void EvaluateKernelBlock(const KernelProgram& program, const KernelBlockOperands<float>& operands,
                         const ProductBlock<float>& products, int64_t count, float* const* out,
                         bool* finite) {
  HWY_DYNAMIC_DISPATCH(EvaluateBlockF32)(program, operands, products, count, out, finite);
}

void EvaluateKernelBlock(const KernelProgram& program, const KernelBlockOperands<double>& operands,
                         const ProductBlock<double>& products, int64_t count, double* const* out,
                         bool* finite) {
  HWY_DYNAMIC_DISPATCH(EvaluateBlockF64)(program, operands, products, count, out, finite);
}

template <typename T>
void EvaluateFactors(const KernelProgram& program, const T* norms, const T* const* forms,
                     int64_t count, T* const* out) {
  const T* made[kMaxKernelFactors] = {};
  for (size_t m = 0; m < program.factors().size(); ++m) {
    Evaluate(program, static_cast<int>(m), SelfOperands(norms, forms, made), count, out[m]);
    made[m] = out[m];
  }
}

template <typename T>
void EvaluateSelf(const KernelProgram& program, const T* norms, const T* const* forms,
                  const T* const* factors, int64_t count, T* out) {
  Evaluate(program, -1, SelfOperands(norms, forms, factors), count, out);
}

template void EvaluateFactors(const KernelProgram&, const float*, const float* const*, int64_t,
                              float* const*);
template void EvaluateFactors(const KernelProgram&, const double*, const double* const*, int64_t,
                              double* const*);
template void EvaluateSelf(const KernelProgram&, const float*, const float* const*,
                           const float* const*, int64_t, float*);
template void EvaluateSelf(const KernelProgram&, const double*, const double* const*,
                           const double* const*, int64_t, double*);

}  // namespace phimap
#endif  // HWY_ONCE
