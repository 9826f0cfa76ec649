// Operations that push the operands of a pair of rows.
#ifndef PHIMAP_CORE_KERNEL_OP_OPERAND_FACTS_
#define PHIMAP_CORE_KERNEL_OP_OPERAND_FACTS_

#include "core/kernel/op/op_facts.h"

namespace phimap {

template <>
struct OpFacts<KernelOpCode::kPushProduct> : PushFacts {
  static constexpr absl::string_view kName = "push_product";
  static constexpr OpReads kReads = OpReads::kProduct;
  static const RoundedValue& Round(const KernelOp&, const RoundedOperands& in) {
    return in.product;
  }
};

template <>
struct OpFacts<KernelOpCode::kPushShiftedProduct> : PushFacts {
  static constexpr absl::string_view kName = "push_shifted_product";
  static constexpr OpReads kReads = OpReads::kShiftedProduct;
  static const RoundedValue& Round(const KernelOp&, const RoundedOperands& in) {
    return in.product;
  }
};

template <>
struct OpFacts<KernelOpCode::kPushSquaredDistance> : PushFacts {
  static constexpr absl::string_view kName = "push_squared_distance";
  static constexpr OpReads kReads = OpReads::kSquaredDistance;
  static const RoundedValue& Round(const KernelOp&, const RoundedOperands& in) {
    return in.squared_distance;
  }
};

template <>
struct OpFacts<KernelOpCode::kPushL1Distance> : PushFacts {
  static constexpr absl::string_view kName = "push_l1_distance";
  static constexpr OpReads kReads = OpReads::kL1Distance;
  static const RoundedValue& Round(const KernelOp&, const RoundedOperands& in) {
    return in.l1_distance;
  }
};

template <>
struct OpFacts<KernelOpCode::kPushForm> : PushFacts {
  static constexpr absl::string_view kName = "push_form";
  static constexpr OpReads kReads = OpReads::kForm;
  static const RoundedValue& Round(const KernelOp& op, const RoundedOperands& in) {
    return in.forms[op.n];
  }
};

template <>
struct OpFacts<KernelOpCode::kPushString> : PushFacts {
  static constexpr absl::string_view kName = "push_string";
  static constexpr OpReads kReads = OpReads::kString;
  static const RoundedValue& Round(const KernelOp& op, const RoundedOperands& in) {
    return in.forms[op.n];
  }
};

template <>
struct OpFacts<KernelOpCode::kPushColumnSum> : PushFacts {
  static constexpr absl::string_view kName = "push_column_sum";
  static constexpr OpReads kReads = OpReads::kColumnSum;
  static const RoundedValue& Round(const KernelOp& op, const RoundedOperands& in) {
    return in.forms[op.n];
  }
};

template <>
struct OpFacts<KernelOpCode::kPushFactor> : PushFacts {
  static constexpr absl::string_view kName = "push_factor";
  static constexpr OpReads kReads = OpReads::kFactor;
  static const RoundedValue& Round(const KernelOp& op, const RoundedOperands& in) {
    return in.factors[op.n];
  }
};

}  // namespace phimap
#endif  // PHIMAP_CORE_KERNEL_OP_OPERAND_FACTS_

#if defined(PHIMAP_CORE_KERNEL_OP_OPERAND_BODIES_) == defined(HWY_TARGET_TOGGLE)
#ifdef PHIMAP_CORE_KERNEL_OP_OPERAND_BODIES_
#undef PHIMAP_CORE_KERNEL_OP_OPERAND_BODIES_
#else
#define PHIMAP_CORE_KERNEL_OP_OPERAND_BODIES_
#endif

#include <algorithm>

#include "core/kernel/op/op_body-inl.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V SquaredDistance(D d, V x_norm, V row_norm, V product) {
  // 2·product is exact, so the difference is rounded once, with or without fused multiply-add.
  const auto two = hn::Set(d, hn::TFromD<D>{2});
  return hn::Max(hn::Zero(d), hn::NegMulAdd(two, product, hn::Add(x_norm, row_norm)));
}

template <>
struct OpBody<KernelOpCode::kPushProduct> {
  template <typename T>
  static HWY_INLINE void Push(const KernelOp&, const KernelOperands<T>& in, int64_t begin, T* top) {
    std::copy_n(in.products + begin, kChunk, top);
  }
};

template <>
struct OpBody<KernelOpCode::kPushShiftedProduct> {
  template <typename T>
  static HWY_INLINE void Push(const KernelOp&, const KernelOperands<T>& in, int64_t begin, T* top) {
    const hn::ScalableTag<T> d;
    if (in.offsets == nullptr) {
      std::copy_n(in.products + begin, kChunk, top);
      return;
    }
    for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
      hn::Store(
          hn::Add(hn::LoadU(d, in.products + begin + j), hn::LoadU(d, in.offsets + begin + j)), d,
          top + j);
    }
  }
};

template <>
struct OpBody<KernelOpCode::kPushSquaredDistance> {
  template <typename T>
  static HWY_INLINE void Push(const KernelOp&, const KernelOperands<T>& in, int64_t begin, T* top) {
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
};

template <>
struct OpBody<KernelOpCode::kPushL1Distance> {
  template <typename T>
  static HWY_INLINE void Push(const KernelOp&, const KernelOperands<T>& in, int64_t begin, T* top) {
    if (in.l1_distances == nullptr) {
      std::fill_n(top, kChunk, T{0});
    } else {
      std::copy_n(in.l1_distances + begin, kChunk, top);
    }
  }
};

template <>
struct OpBody<KernelOpCode::kPushForm> {
  template <typename T>
  static HWY_INLINE void Push(const KernelOp& op, const KernelOperands<T>& in, int64_t begin,
                              T* top) {
    std::copy_n(in.forms[op.n] + begin, kChunk, top);
  }
};

template <>
struct OpBody<KernelOpCode::kPushString> {
  template <typename T>
  static HWY_INLINE void Push(const KernelOp& op, const KernelOperands<T>& in, int64_t begin,
                              T* top) {
    std::copy_n(in.forms[op.n] + begin, kChunk, top);
  }
};

template <>
struct OpBody<KernelOpCode::kPushColumnSum> {
  template <typename T>
  static HWY_INLINE void Push(const KernelOp& op, const KernelOperands<T>& in, int64_t begin,
                              T* top) {
    std::copy_n(in.forms[op.n] + begin, kChunk, top);
  }
};

template <>
struct OpBody<KernelOpCode::kPushFactor> {
  template <typename T>
  static HWY_INLINE void Push(const KernelOp& op, const KernelOperands<T>& in, int64_t begin,
                              T* top) {
    const hn::ScalableTag<T> d;
    const T* const rows = in.row_factors[op.n] + begin;
    for (int64_t j = 0; j < kChunk; j += hn::Lanes(d)) {
      const auto row = hn::LoadU(d, rows + j);
      const auto x = in.x_factors == nullptr ? row : hn::Set(d, in.x_factors[op.n]);
      hn::Store(hn::Mul(x, row), d, top + j);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#endif
