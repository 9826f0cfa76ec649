// Tests each function of kernel programs: its error against the standard library stays within the
// stated bound, and all fused targets give the same bits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernel/kernel_evaluator.h"
#include "gtest/gtest.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

template <typename T>
class KernelFunctionsTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelFunctionsTest, Types);

template <typename T>
void EvaluateOperands(const KernelProgram& program, const T* products, T x_norm, const T* row_norms,
                      int64_t count, T* out) {
  KernelOperands<T> operands;
  operands.products = products;
  operands.x_norm = x_norm;
  operands.row_norms = row_norms;
  EvaluateKernel(program, operands, count, out);
}

// The error of `got` in units of the last place of the exact value.
template <typename T>
double UlpError(T got, long double exact) {
  const T rounded = static_cast<T>(exact);
  const T ulp =
      std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity()) - std::abs(rounded);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / ulp);
}

// The documented bound for exp is 1 ULP in float32 and 1.5 ULP in float64. It holds for all
// arguments whose result is a normal number.
TYPED_TEST(KernelFunctionsTest, ExpKeepsItsUlpBound) {
  using T = TypeParam;
  const double bound = sizeof(T) == 4 ? 1.0 : 1.5;
  const T lowest = sizeof(T) == 4 ? T{-87} : T{-708};
  constexpr int64_t kCount = 200000;
  const absl::StatusOr<KernelProgram> exp =
      KernelProgram::FromOps({{.code = KernelOpCode::kPushProduct}, {.code = KernelOpCode::kExp}});
  const Matrix<T> unit = UniformRowsOf<T>({.rows = 1, .cols = kCount, .seed = 3});
  std::vector<T> x(kCount);
  for (int64_t j = 0; j < kCount; ++j) {
    // Half of the arguments are over the whole range, the other half near 0, where most arguments
    // of kernels are.
    x[j] = j % 2 == 0 ? lowest * std::abs(unit(0, j)) : unit(0, j) * 8;
  }
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    std::vector<T> out(kCount);
    EvaluateKernel(*exp, KernelOperands<T>{x.data()}, kCount, out.data());
    double worst = 0;
    for (int64_t j = 0; j < kCount; ++j) {
      worst = std::max(worst, UlpError(out[j], std::exp(static_cast<long double>(x[j]))));
    }
    EXPECT_LE(worst, bound) << target.name;
    ::testing::Test::RecordProperty("worst_ulp_" + target.name, std::to_string(worst));
  }
}

TYPED_TEST(KernelFunctionsTest, ExpOfZeroIsOneAndOfMuchLessIsZero) {
  using T = TypeParam;
  const T norms[3] = {1, T{1e30}, 1};
  const T products[3] = {1, 0, T{-1e30}};
  T out[3];
  EvaluateKernel(KernelProgram::Compile(MustParseKernel("rbf(gamma=0.5)")), {products, T{1}, norms},
                 3, out);
  EXPECT_EQ(out[0], T{1});
  EXPECT_EQ(out[1], T{0});
  EXPECT_EQ(out[2], T{0});
}

// A kernel that is undefined for a row gives NaN, which must reach the features.
TYPED_TEST(KernelFunctionsTest, ExpOfNanIsNan) {
  using T = TypeParam;
  const KernelProgram program = *KernelProgram::FromOps({KernelOp{}, {.code = KernelOpCode::kExp}});
  const std::vector<T> in(70, std::numeric_limits<T>::quiet_NaN());  // a chunk and a remainder
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    std::vector<T> out(in.size());
    EvaluateOperands(program, in.data(), T{0}, static_cast<const T*>(nullptr),
                     static_cast<int64_t>(in.size()), out.data());
    for (const T value : out) EXPECT_TRUE(std::isnan(value)) << target.name;
  }
}

TYPED_TEST(KernelFunctionsTest, PowersEqualRepeatedMultiplicationOfExactNumbers) {
  using T = TypeParam;
  for (int degree = 1; degree <= 64; ++degree) {
    const absl::StatusOr<KernelProgram> power = KernelProgram::FromOps(
        {{.code = KernelOpCode::kPushProduct}, {.code = KernelOpCode::kPower, .n = degree}});
    const T x = -2;  // exact in every step
    T out = 0;
    EvaluateKernel(*power, KernelOperands<T>{&x}, 1, &out);
    EXPECT_EQ(out, static_cast<T>(std::ldexp(degree % 2 == 0 ? 1.0 : -1.0, degree))) << degree;
  }
}

// Highway's bound for tanh is 4 ULP. It is checked over small and large arguments.
TYPED_TEST(KernelFunctionsTest, TanhKeepsItsUlpBoundAndHasTheSameBitsOnFusedTargets) {
  using T = TypeParam;
  constexpr int64_t kCount = 20000;
  const Matrix<T> unit = UniformRowsOf<T>({.rows = 1, .cols = kCount, .seed = 4});
  std::vector<T> x(kCount);
  for (int64_t j = 0; j < kCount; ++j) x[j] = unit(0, j) * std::ldexp(T{1}, j % 12 - 7);
  x[0] = 0;
  x[1] = 1000;
  x[2] = -1000;
  const absl::StatusOr<KernelProgram> tanh =
      KernelProgram::FromOps({{.code = KernelOpCode::kPushProduct}, {.code = KernelOpCode::kTanh}});
  std::vector<T> first;
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    std::vector<T> out(kCount);
    EvaluateOperands(*tanh, x.data(), T{0}, static_cast<const T*>(nullptr), kCount, out.data());
    for (int64_t j = 0; j < kCount; ++j) {
      ASSERT_LE(UlpError(out[j], std::tanh(static_cast<long double>(x[j]))), 4)
          << target.name << " " << x[j];
    }
    if (!target.fused) continue;
    if (first.empty()) first = out;
    EXPECT_TRUE(SameBits(out.data(), first.data(), kCount)) << target.name;
  }
}

// Returns 0, then rising arguments from 2^-20 to 2^12.
template <typename T>
std::vector<T> RisingArguments() {
  std::vector<T> t = {0};
  for (T next = std::ldexp(T{1}, -20); next < 4096; next *= T{1.01}) t.push_back(next);
  return t;
}

// Compares with the exact Matérn function f of r = √t. r is rounded. With the unit round-off u,
// this changes e^{−r} by r·u·e^{−r} and f by r·|f'(r)|·u. The roundings of the function's own
// operations add less than 6·eps·f.
TYPED_TEST(KernelFunctionsTest, MaternFunctionsKeepTheirBoundAndHaveTheSameBitsOnFusedTargets) {
  using T = TypeParam;
  const std::vector<T> t = RisingArguments<T>();
  const auto count = static_cast<int64_t>(t.size());
  for (const int32_t n : {1, 3, 5}) {
    const KernelProgram program =
        *KernelProgram::FromOps({KernelOp{}, {.code = KernelOpCode::kMatern, .n = n}});
    std::vector<T> first;
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      std::vector<T> out(t.size());
      EvaluateOperands(program, t.data(), T{0}, static_cast<const T*>(nullptr), count, out.data());
      for (size_t j = 0; j < t.size(); ++j) {
        const long double r = std::sqrt(static_cast<long double>(t[j]));
        const long double decay = std::exp(-r);
        const long double exact = (n == 1 ? 1 : n == 3 ? 1 + r : 1 + r + r * r / 3) * decay;
        const long double cost = (n == 1 ? r : n == 3 ? r * r : r * r * (1 + r) / 3) * decay;
        const auto eps = static_cast<long double>(std::numeric_limits<T>::epsilon());
        ASSERT_NEAR(out[j], exact, eps * (6 * exact + cost) + 1e-36L) << target.name << " " << t[j];
      }
      if (!target.fused) continue;
      if (first.empty()) first = out;
      EXPECT_TRUE(SameBits(out.data(), first.data(), count)) << target.name;
    }
    const T far[] = {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()};
    T out[2];
    EvaluateOperands(program, far, T{0}, static_cast<const T*>(nullptr), 2, out);
    EXPECT_EQ(out[0], 0);
    EXPECT_TRUE(std::isnan(out[1]));
  }
  for (const int32_t n : {0, 2, 4, 7}) {
    EXPECT_FALSE(
        KernelProgram::FromOps({KernelOp{}, {.code = KernelOpCode::kMatern, .n = n}}).ok());
  }
}

TYPED_TEST(KernelFunctionsTest, LogarithmKeepsItsUlpBoundAndHasTheSameBitsOnFusedTargets) {
  using T = TypeParam;
  const std::vector<T> t = RisingArguments<T>();
  const auto count = static_cast<int64_t>(t.size());
  const KernelProgram program =
      *KernelProgram::FromOps({KernelOp{}, {.code = KernelOpCode::kLogOnePlus}});
  std::vector<T> first;
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    std::vector<T> out(t.size());
    EvaluateOperands(program, t.data(), T{0}, static_cast<const T*>(nullptr), count, out.data());
    for (size_t j = 0; j < t.size(); ++j) {
      ASSERT_LE(UlpError(out[j], std::log1p(static_cast<long double>(t[j]))), 4)
          << target.name << " " << t[j];
    }
    if (!target.fused) continue;
    if (first.empty()) first = out;
    EXPECT_TRUE(SameBits(out.data(), first.data(), count)) << target.name;
  }
}

TYPED_TEST(KernelFunctionsTest, RootsInversesAndTheTestForZeroAreExact) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T tiny = std::numeric_limits<T>::denorm_min();
  const T in[] = {0, T{-0.0}, tiny, 4, T{0.25}, -4};
  struct {
    KernelOpCode code;
    T expected[6];
  } const cases[] = {
      {KernelOpCode::kIsZero, {1, 1, 0, 0, 0, 0}},
      {KernelOpCode::kSquareRoot, {0, 0, std::sqrt(tiny), 2, T{0.5}, nan}},
      {KernelOpCode::kInverse, {nan, nan, 1 / tiny, T{0.25}, 4, nan}},
      {KernelOpCode::kInverseOrZero, {0, 0, 1 / tiny, T{0.25}, 4, 0}},
  };
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    for (const auto& c : cases) {
      const KernelProgram program = *KernelProgram::FromOps({KernelOp{}, KernelOp{.code = c.code}});
      T out[6];
      EvaluateOperands(program, in, T{0}, static_cast<const T*>(nullptr), 6, out);
      for (int i = 0; i < 6; ++i) {
        if (std::isnan(c.expected[i])) {
          EXPECT_TRUE(std::isnan(out[i])) << target.name << static_cast<int>(c.code) << in[i];
        } else {
          EXPECT_EQ(out[i], c.expected[i]) << target.name << static_cast<int>(c.code) << in[i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace phimap::testing
