#include "bench/vector_loops.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/vector_loops.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The following headers must come after foreach_target.h, which includes this file once for each
// target.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace phimap::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// With a latency of 4 cycles and two operations per cycle, 8 chains suffice. 12 chains fit into the
// 16 registers of AVX2 and leave some free.
constexpr int kChains = 12;

// The factors are read from memory, so no compiler can know them. The sums approach a fixed point,
// so they neither overflow nor become denormal.
volatile float g_factor = 0.5f;
volatile float g_start = 0;
volatile float g_sink = 0;

int64_t MultiplyAdds(int64_t rounds) {
  const D d;
  const auto factor = hn::Set(d, g_factor);
  const auto term = hn::Set(d, g_factor);
  // Each chain starts from its own read, because a compiler could merge chains with the same start.
  auto s0 = hn::Set(d, g_start), s1 = hn::Set(d, g_start), s2 = hn::Set(d, g_start);
  auto s3 = hn::Set(d, g_start), s4 = hn::Set(d, g_start), s5 = hn::Set(d, g_start);
  auto s6 = hn::Set(d, g_start), s7 = hn::Set(d, g_start), s8 = hn::Set(d, g_start);
  auto s9 = hn::Set(d, g_start), s10 = hn::Set(d, g_start), s11 = hn::Set(d, g_start);
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, factor, term);
    s1 = hn::MulAdd(s1, factor, term);
    s2 = hn::MulAdd(s2, factor, term);
    s3 = hn::MulAdd(s3, factor, term);
    s4 = hn::MulAdd(s4, factor, term);
    s5 = hn::MulAdd(s5, factor, term);
    s6 = hn::MulAdd(s6, factor, term);
    s7 = hn::MulAdd(s7, factor, term);
    s8 = hn::MulAdd(s8, factor, term);
    s9 = hn::MulAdd(s9, factor, term);
    s10 = hn::MulAdd(s10, factor, term);
    s11 = hn::MulAdd(s11, factor, term);
  }
  const auto left = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(s4, s5));
  const auto right = hn::Add(hn::Add(hn::Add(s6, s7), hn::Add(s8, s9)), hn::Add(s10, s11));
  g_sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(left, right)));
  return 2 * kChains * rounds * static_cast<int64_t>(hn::Lanes(d));
}

float ReadThrough(const float* values, int64_t count) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  int64_t i = 0;
  for (; i + 8 * lanes <= count; i += 8 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, values + i));
    s1 = hn::Add(s1, hn::LoadU(d, values + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, values + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, values + i + 3 * lanes));
    s4 = hn::Add(s4, hn::LoadU(d, values + i + 4 * lanes));
    s5 = hn::Add(s5, hn::LoadU(d, values + i + 5 * lanes));
    s6 = hn::Add(s6, hn::LoadU(d, values + i + 6 * lanes));
    s7 = hn::Add(s7, hn::LoadU(d, values + i + 7 * lanes));
  }
  const auto all =
      hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  float sum = hn::GetLane(hn::SumOfLanes(d, all));
  for (; i < count; ++i) sum += values[i];
  return sum;
}

void Rbf(float gamma, float norm, const float* norms, int64_t count, float* products) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, -gamma);
  const auto own = hn::Set(d, norm);
  const auto minus_two = hn::Set(d, -2.0f);
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    const auto sum = hn::Add(own, hn::LoadU(d, norms + j));
    const auto distance = hn::MulAdd(minus_two, hn::LoadU(d, products + j), sum);
    const auto value = hn::Exp(d, hn::Mul(factor, hn::Max(hn::Zero(d), distance)));
    hn::StoreU(value, d, products + j);
  }
  for (; j < count; ++j) {
    products[j] = std::exp(-gamma * std::max(0.0f, norm + norms[j] - 2 * products[j]));
  }
}

void Cosines(int64_t count, float* products) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kTurn = 6.2831853f;
  const auto turn = hn::Set(d, kTurn);
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    hn::StoreU(hn::Cos(d, hn::Mul(turn, hn::LoadU(d, products + j))), d, products + j);
  }
  for (; j < count; ++j) products[j] = std::cos(kTurn * products[j]);
}

float Norm(const float* x, int64_t count) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes) {
    const auto v = hn::LoadU(d, x + k);
    sum = hn::MulAdd(v, v, sum);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; k < count; ++k) total += x[k] * x[k];
  return total;
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace phimap::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phimap::bench {

HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(ReadThrough);
HWY_EXPORT(Rbf);
HWY_EXPORT(Cosines);
HWY_EXPORT(Norm);
HWY_EXPORT(TargetName);

int64_t RunMultiplyAdds(int64_t rounds) { return HWY_DYNAMIC_DISPATCH(MultiplyAdds)(rounds); }

float ReadAll(const float* values, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(ReadThrough)(values, count);
}

void RbfRow(float gamma, float norm, const float* norms, int64_t count, float* products) {
  HWY_DYNAMIC_DISPATCH(Rbf)(gamma, norm, norms, count, products);
}

void CosRow(int64_t count, float* products) { HWY_DYNAMIC_DISPATCH(Cosines)(count, products); }

float SquaredNorm(const float* x, int64_t count) { return HWY_DYNAMIC_DISPATCH(Norm)(x, count); }

const char* LoopTargetName() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace phimap::bench
#endif  // HWY_ONCE
