// Matérn functions of half-integer order n/2 of a root. With r = √t:
//   n = 1   e^{−r}
//   n = 3   (1 + r)·e^{−r}
//   n = 5   (1 + r + r²/3)·e^{−r}
// Each is one operation and not several, because the last two are smooth at t = 0, where the root
// is not: an error of t changes them by a half or a sixth of it, not by its root.
#ifndef PHIMAP_CORE_KERNEL_OP_MATERN_FACTS_
#define PHIMAP_CORE_KERNEL_OP_MATERN_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

template <>
struct OpFacts<KernelOpCode::kMatern> : UnaryFacts {
  static constexpr absl::string_view kName = "matern";
  static constexpr double kThirdsOfRbf = 2;
  static absl::string_view WhyInvalid(const KernelOp& op) {
    return op.n == 1 || op.n == 3 || op.n == 5 ? "" : "an order of Matérn is not 1, 3 or 5";
  }

  static double ValueAt(int32_t n, double r) {
    if (n == 1) return std::exp(-r);
    return (n == 3 ? 1 + r : 1 + r + r * r / 3) * std::exp(-r);
  }
  // Returns r·|f'(r)|, the effect of a relative error of r. It rises up to `peak` and then falls.
  static double CostAt(int32_t n, double r) {
    if (n == 1) return r * std::exp(-r);
    return (n == 3 ? r * r : r * r * (1 + r) / 3) * std::exp(-r);
  }
  static double LargestCost(int32_t n, double low, double high) {
    const double peak = n == 1 ? 1.0 : n == 3 ? 2.0 : 1 + std::sqrt(3.0);
    return CostAt(n, high < peak ? high : std::max(low, peak));
  }
  // The effect of an error of t, for t ≥ low². |df/dt| falls, so it is largest at low². For n = 1
  // it is infinite at 0, where f is off by the root of the error.
  static double CostOfAbsolute(int32_t n, double low, double absolute, double unit) {
    if (absolute == 0) return 0;
    const double root = std::sqrt(absolute / unit);
    if (n == 1) return low > 0 ? std::min(root, absolute / (2 * low) * std::exp(-low)) : root;
    return absolute * (n == 3 ? 0.5 : (1 + low) / 6) * std::exp(-low);
  }

  static RoundedValue Round(const KernelOp& op, const RoundedValue& t, const RoundingUnit& in) {
    const double low = std::sqrt(std::max(0.0, t.low));
    const double high = std::sqrt(std::max(0.0, t.high));
    // Roundings of the polynomial, of the exponential, and of their product.
    const double own = kFunctionRoundings + (op.n == 1 ? 0 : op.n == 3 ? 2 : 4);
    return {ValueAt(op.n, high), ValueAt(op.n, low),
            (t.relative / 2 + 1) * LargestCost(op.n, low, high) +
                CostOfAbsolute(op.n, low, t.absolute, in.unit),
            own};
  }
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_MATERN_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_MATERN_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_MATERN_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_MATERN_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_MATERN_BODIES_
#endif

#include "core/kernel/op/exponential-inl.h"
#include "core/kernel/op/op_body-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

template <>
struct OpBody<KernelOpCode::kMatern> {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, const KernelOp& op, V t) {
    using T = hn::TFromD<D>;
    const V r = hn::Sqrt(t);
    const V decay = Exponential<false>(d, hn::Neg(r));
    if (op.n == 1) return decay;
    V polynomial = hn::Add(r, hn::Set(d, T{1}));
    if (op.n == 5) polynomial = hn::MulAdd(t, hn::Set(d, static_cast<T>(1.0 / 3)), polynomial);
    // Infinity times 0 counts as 0 here.
    return hn::IfThenElse(hn::Eq(decay, hn::Zero(d)), decay, hn::Mul(polynomial, decay));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
