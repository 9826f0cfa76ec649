// Computes squared norms by the chains of products (panel_product.h).
#include <algorithm>

#include "core/linalg/panel_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/linalg/chain_norms.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must follow foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace phimap {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Runs the chains of kRows rows side by side, to hide the latency of the multiply-add. The sums
// take at most 32 bytes: gcc 12 keeps 64 bytes in one AVX-512 vector, for which AddressSanitizer's
// stack is not aligned.
template <int kRows, typename T>
HWY_INLINE void SquaredNormsOf(const T* HWY_RESTRICT x, int64_t stride, int64_t cols, T* out) {
  const hn::CappedTag<T, 1> d;
  T totals[kRows] = {};
  for (int64_t begin = 0; begin < cols; begin += kChainBlock) {
    const int64_t end = std::min(cols, begin + kChainBlock);
    T sums[kRows] = {};
    for (int64_t k = begin; k < end; ++k) {
      for (int r = 0; r < kRows; ++r) {
        const auto v = hn::Set(d, x[r * stride + k]);
        sums[r] = hn::GetLane(hn::MulAdd(v, v, hn::Set(d, sums[r])));
      }
    }
    for (int r = 0; r < kRows; ++r) totals[r] += sums[r];
  }
  std::copy_n(totals, kRows, out);
}

template <typename T>
void SquaredNorms(const T* x, int64_t stride, int64_t rows, int64_t cols, T* out) {
  int64_t i = 0;
  constexpr int kMost = 32 / sizeof(T);
  for (; i + kMost <= rows; i += kMost) {
    SquaredNormsOf<kMost>(x + i * stride, stride, cols, out + i);
  }
  for (; i + 4 <= rows; i += 4) SquaredNormsOf<4>(x + i * stride, stride, cols, out + i);
  for (; i + 2 <= rows; i += 2) SquaredNormsOf<2>(x + i * stride, stride, cols, out + i);
  for (; i < rows; ++i) SquaredNormsOf<1>(x + i * stride, stride, cols, out + i);
}

void SquaredNormsF32(const float* x, int64_t stride, int64_t rows, int64_t cols, float* out) {
  SquaredNorms(x, stride, rows, cols, out);
}
void SquaredNormsF64(const double* x, int64_t stride, int64_t rows, int64_t cols, double* out) {
  SquaredNorms(x, stride, rows, cols, out);
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }
bool TargetFuses() { return HWY_NATIVE_FMA != 0; }

}  // namespace HWY_NAMESPACE
}  // namespace phimap
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap {
namespace {

HWY_EXPORT(SquaredNormsF32);
HWY_EXPORT(SquaredNormsF64);
HWY_EXPORT(TargetName);
HWY_EXPORT(TargetFuses);

}  // namespace

void ChainSquaredNorms(const float* x, int64_t stride, int64_t rows, int64_t cols, float* out) {
  HWY_DYNAMIC_DISPATCH(SquaredNormsF32)(x, stride, rows, cols, out);
}
void ChainSquaredNorms(const double* x, int64_t stride, int64_t rows, int64_t cols, double* out) {
  HWY_DYNAMIC_DISPATCH(SquaredNormsF64)(x, stride, rows, cols, out);
}

bool VectorTargetFuses() { return HWY_DYNAMIC_DISPATCH(TargetFuses)(); }

const char* VectorTargetName() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace phimap
#endif  // HWY_ONCE
