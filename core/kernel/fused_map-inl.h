// Fused maps evaluate the programs that nearly every plan has. They work on one vector at a time
// and do not store intermediate results in memory. They do the same operations on the same numbers
// as the general evaluator, so the bits are the same.
//
// A map has two functions. Argument combines the product with the other operands. Apply computes
// the value from that argument. If kSecond is true, Apply also computes a second value. Apply<true>
// needs fewer operations than Apply<false>, but it is only for arguments of at most kRange in size.
// For these, it gives the same bits. If Apply<true> would save nothing, kRange is 0.
#if defined(PHIMAP_CORE_KERNEL_FUSED_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_FUSED_MAP_INL_H_
#undef PHIMAP_CORE_KERNEL_FUSED_MAP_INL_H_
#else
#define PHIMAP_CORE_KERNEL_FUSED_MAP_INL_H_
#endif

#include "core/kernel/kernel_evaluator.h"
#include "core/kernel/op/all_ops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

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

// Runs a map on a chunk of operands.
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

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
