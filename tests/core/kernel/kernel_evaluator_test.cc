#include "core/kernel/kernel_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

template <typename T>
class KernelEvaluatorTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelEvaluatorTest, Types);

constexpr const char* kKernels[] = {
    "linear()",
    "2.5*linear()",
    "poly(degree=1, gamma=0.5, coef0=1)",
    "poly(degree=2, coef0=1)",
    "poly(degree=7, gamma=0.3, coef0=0.9)",
    "rbf(gamma=0.7)",
    "rbf(gamma=0.1) + 0.1*poly(degree=2, coef0=1)",
    "(linear() + rbf(gamma=1))*(poly(degree=3, gamma=0.5) + 0.5*rbf(gamma=2))",
    "sigmoid(gamma=0.7, coef0=0.2)",
    "exp(linear() + 0.5*rbf(gamma=0.3))",
};

// The inputs of one row: products in (−1, 1) and norms in (1, 2), so that distances are in (0, 6).
template <typename T>
struct Inputs {
  explicit Inputs(int64_t count)
      : products(UniformRowsOf<T>({.rows = 1, .cols = count, .seed = 1})),
        norms(UniformRowsOf<T>({.rows = 1, .cols = count, .seed = 2})) {
    for (int64_t j = 0; j < count; ++j) norms(0, j) = T{1.5} + norms(0, j) / 2;
  }
  Matrix<T> products;
  Matrix<T> norms;
  T x_norm = T{1.75};
};

template <typename T>
void EvaluateKernel(const KernelProgram& program, const T* products, T x_norm, const T* row_norms,
                    int64_t count, T* out) {
  KernelOperands<T> operands;
  operands.products = products;
  operands.x_norm = x_norm;
  operands.row_norms = row_norms;
  phimap::EvaluateKernel(program, operands, count, out);
}

template <typename T>
std::vector<T> Evaluate(const KernelProgram& program, const Inputs<T>& in, int64_t first,
                        int64_t count) {
  std::vector<T> out(count);
  const T* const norms = in.norms.data() + first;  // also used as the offsets
  EvaluateKernel(program, {in.products.data() + first, in.x_norm, norms, norms}, count, out.data());
  return out;
}

// Bound on relative errors. u is the unit round-off.
//
// exp(−γt): the distance t has two roundings of numbers under 4, which is an absolute error of 4u.
// γ ≤ 2 turns this into 8u. With the roundings of −γt (≤ 12 in magnitude) and of γ itself, the
// argument gives exp a relative error of 24u. exp adds its own 2u (3u in float64).
//
// Powers: a power of degree 7 has 7 times the error of its base, plus 7 roundings. The base has an
// error of 2u for the fma with rounded parameters, relative to a base of at most 1.2 in magnitude.
//
// Sums and products of a few such values, each at most 4 in magnitude, stay under 200u in all.
template <typename T>
T Tolerance() {
  return 200 * std::numeric_limits<T>::epsilon() / 2;
}

TYPED_TEST(KernelEvaluatorTest, AgreesWithTheFormulasForAllLengthsAroundTheChunk) {
  using T = TypeParam;
  const Inputs<T> in(200);
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    for (const char* text : kKernels) {
      const KernelExpression kernel = MustParseKernel(text);
      const KernelProgram program = KernelProgram::Compile(kernel);
      for (const int64_t count : {0, 1, 2, 7, 8, 31, 63, 64, 65, 127, 128, 129, 200}) {
        const std::vector<T> out = Evaluate(program, in, 0, count);
        for (int64_t j = 0; j < count; ++j) {
          const long double product = in.products(0, j);
          const long double distance = in.norms(0, j) + (in.x_norm - 2 * product);
          ASSERT_NEAR(out[j], static_cast<double>(NaiveKernelOf(kernel.root(), product, distance)),
                      Tolerance<T>())
              << target.name << " " << text << " " << j << " of " << count;
        }
      }
    }
  }
}

TYPED_TEST(KernelEvaluatorTest, BitsAreEqualOnFusedTargetsAndAtAnyPosition) {
  using T = TypeParam;
  const Inputs<T> in(200);
  for (const char* text : kKernels) {
    const KernelProgram program = KernelProgram::Compile(MustParseKernel(text));
    const std::vector<T> expected = Evaluate(program, in, 0, 200);
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      const std::vector<T> all = Evaluate(program, in, 0, 200);
      if (target.fused) {
        EXPECT_TRUE(SameBits(all.data(), expected.data(), 200)) << target.name << " " << text;
      }
      for (int64_t first = 0; first < 200; first += 3) {
        for (const int64_t count : {int64_t{1}, (200 - first) / 2, 200 - first}) {
          const std::vector<T> part = Evaluate(program, in, first, count);
          EXPECT_TRUE(SameBits(part.data(), all.data() + first, count))
              << target.name << " " << text << " " << first << " + " << count;
        }
      }
    }
  }
}

// A final multiplication by 1 changes no bit, but prevents a program from running fused.
TYPED_TEST(KernelEvaluatorTest, FusedProgramsHaveTheBitsOfTheirOperations) {
  using T = TypeParam;
  const Inputs<T> in(200);
  const KernelOp turns{.code = KernelOpCode::kCosTurns, .a = 0.75};
  for (const KernelProgram& fused :
       {KernelProgram::Compile(MustParseKernel("rbf(gamma=0.7)")),
        KernelProgram::Compile(MustParseKernel("poly(degree=3, gamma=0.3, coef0=1)")),
        *KernelProgram::FromOps({{.code = KernelOpCode::kPushShiftedProduct}, turns})}) {
    ASSERT_NE(fused.shape(), KernelProgram::Shape::kAny);
    std::vector<KernelOp> ops = fused.ops();
    ops.push_back({.code = KernelOpCode::kScale, .a = 1});
    const KernelProgram plain = *KernelProgram::FromOps(ops);
    ASSERT_EQ(plain.shape(), KernelProgram::Shape::kAny);
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      const std::vector<T> a = Evaluate(fused, in, 0, 200);
      const std::vector<T> b = Evaluate(plain, in, 0, 200);
      EXPECT_TRUE(SameBits(a.data(), b.data(), 200)) << target.name;
    }
  }
}

TYPED_TEST(KernelEvaluatorTest, APairRunsFusedWithTheBitsOfItsOperations) {
  using T = TypeParam;
  const Inputs<T> in(200);
  const KernelOp push{.code = KernelOpCode::kPushProduct};
  const KernelOp pair{.code = KernelOpCode::kCosSinTurns, .a = 0.3};
  const KernelProgram fused = *KernelProgram::FromOps({push, pair});
  const KernelProgram plain =
      *KernelProgram::FromOps({push, {.code = KernelOpCode::kScale, .a = 1}, pair});
  ASSERT_EQ(fused.shape(), KernelProgram::Shape::kSinCos);
  ASSERT_EQ(plain.shape(), KernelProgram::Shape::kAny);
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    std::vector<T> a(400);
    std::vector<T> b(400);
    EvaluateKernel(fused, KernelOperands<T>{in.products.data()}, 200, a.data());
    EvaluateKernel(plain, KernelOperands<T>{in.products.data()}, 200, b.data());
    EXPECT_TRUE(SameBits(a.data(), b.data(), 400)) << target.name;
  }
}

// Highway documents an error of at most 3 ULP for cos and sin within their range. The arguments are
// exact in this test. For arguments beyond the range, the result is NaN.
TYPED_TEST(KernelEvaluatorTest, CosAndSinKeepTheirBoundAndRefuseWhatTheyCannotReduce) {
  using T = TypeParam;
  std::vector<T> arguments;
  for (int i = -3000; i <= 3000; ++i) arguments.push_back(static_cast<T>(i) * static_cast<T>(0.37));
  arguments.insert(arguments.end(), {T{0}, T{39000}, T{-39000}});
  const int64_t count = arguments.size();
  std::vector<T> out(count);
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    for (const KernelOpCode code : {KernelOpCode::kCos, KernelOpCode::kSin}) {
      const KernelProgram program = *KernelProgram::FromOps({KernelOp{}, KernelOp{.code = code}});
      EvaluateKernel(program, KernelOperands<T>{arguments.data()}, count, out.data());
      for (int64_t i = 0; i < count; ++i) {
        const long double t = arguments[i];
        const long double exact = code == KernelOpCode::kCos ? std::cos(t) : std::sin(t);
        ASSERT_NEAR(out[i], static_cast<double>(exact), 3 * std::numeric_limits<T>::epsilon())
            << target.name << " " << arguments[i];
      }
      const T far[] = {T{39001}, T{-1e6}};
      EvaluateKernel(program, KernelOperands<T>{far}, 2, out.data());
      EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1])) << target.name;
    }
  }
}

// Tests cosines and sines of angles in turns. The angles are exact, so any error is the function's
// own. The two operations that compute a cosine must give the same bits.
TYPED_TEST(KernelEvaluatorTest, TurnsKeepTheirBoundAndGiveZeroWhereNoAngleIsLeft) {
  using T = TypeParam;
  constexpr T kAmplitude = T{0.75};
  constexpr double kBound = sizeof(T) == 4 ? 3 : 4;
  const long double turn = 2 * std::acos(-1.0L);
  const T limit = sizeof(T) == 4 ? static_cast<T>(0x1p20) : static_cast<T>(0x1p48);
  const Matrix<T> unit = UniformRowsOf<T>({.rows = 1, .cols = 20000, .seed = 4});
  std::vector<T> angles;
  for (int64_t j = 0; j < unit.cols(); ++j) {
    angles.push_back(unit(0, j) * (j % 2 == 0 ? 1 : 2000));
  }
  for (int i = -16; i <= 16; ++i) angles.push_back(static_cast<T>(i) / 8);
  angles.insert(angles.end(), {limit, -limit, limit / 4 + T{0.25}});
  const int64_t count = angles.size();
  const KernelProgram cosine =
      *KernelProgram::FromOps({KernelOp{}, {.code = KernelOpCode::kCosTurns, .a = kAmplitude}});
  const KernelProgram pair =
      *KernelProgram::FromOps({KernelOp{}, {.code = KernelOpCode::kCosSinTurns, .a = kAmplitude}});
  ASSERT_EQ(pair.results(), 2);
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    std::vector<T> cos(count);
    std::vector<T> both(2 * count);
    EvaluateKernel(cosine, KernelOperands<T>{angles.data()}, count, cos.data());
    EvaluateKernel(pair, KernelOperands<T>{angles.data()}, count, both.data());
    EXPECT_TRUE(SameBits(cos.data(), both.data(), count)) << target.name;
    double worst = 0;
    for (int64_t j = 0; j < count; ++j) {
      const long double t = std::remainder(static_cast<long double>(angles[j]), 1.0L) * turn;
      worst = std::max<double>(worst, std::abs(both[j] - kAmplitude * std::cos(t)));
      worst = std::max<double>(worst, std::abs(both[count + j] - kAmplitude * std::sin(t)));
    }
    EXPECT_LE(worst, kBound * std::numeric_limits<T>::epsilon() * kAmplitude) << target.name;
    const T far[] = {2 * limit, -2 * limit, T{1e30}, std::numeric_limits<T>::infinity(),
                     std::numeric_limits<T>::quiet_NaN()};
    T out[10];
    EvaluateKernel(pair, KernelOperands<T>{far}, 5, out);
    for (const int j : {0, 1, 2, 5, 6, 7}) EXPECT_EQ(out[j], T{0}) << target.name;
    for (const int j : {3, 4, 8, 9}) EXPECT_TRUE(std::isnan(out[j])) << target.name;
  }
}

TYPED_TEST(KernelEvaluatorTest, PairsAndOffsetsHaveEqualBitsOnFusedTargetsAndAtAnyPosition) {
  using T = TypeParam;
  const Inputs<T> in(300);
  for (const KernelOpCode push : {KernelOpCode::kPushProduct, KernelOpCode::kPushShiftedProduct}) {
    const KernelProgram program =
        *KernelProgram::FromOps({{.code = push}, {.code = KernelOpCode::kCosSinTurns, .a = 0.3}});
    const auto evaluate = [&](int64_t first, int64_t count) {
      std::vector<T> out(2 * count);
      EvaluateKernel(program, {in.products.data() + first, T{0}, nullptr, in.norms.data() + first},
                     count, out.data());
      return out;
    };
    const std::vector<T> expected = evaluate(0, 300);
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      const std::vector<T> all = evaluate(0, 300);
      if (target.fused) {
        EXPECT_TRUE(SameBits(all.data(), expected.data(), 600)) << target.name;
      }
      for (int64_t first = 0; first < 300; first += 7) {
        for (const int64_t count : {int64_t{1}, (300 - first) / 2, 300 - first}) {
          const std::vector<T> part = evaluate(first, count);
          EXPECT_TRUE(SameBits(part.data(), all.data() + first, count) &&
                      SameBits(part.data() + count, all.data() + 300 + first, count))
              << target.name << " " << first << " + " << count;
        }
      }
    }
  }
}

// Returns programs that run on blocks of rows. rbf(gamma=40) has arguments on either side of the
// limit below which the float32 exp is known to cause no harm. exp(900·t) overflows.
std::vector<KernelProgram> BlockPrograms() {
  std::vector<KernelProgram> programs;
  for (const char* text :
       {"rbf(gamma=0.7)", "rbf(gamma=40)", "poly(degree=7, gamma=0.3, coef0=1)"}) {
    programs.push_back(KernelProgram::Compile(MustParseKernel(text)));
  }
  using Code = KernelOpCode;
  for (std::vector<KernelOp> ops : std::vector<std::vector<KernelOp>>{
           {{.code = Code::kPushSquaredDistance},
            {.code = Code::kScale, .a = 900},
            {.code = Code::kExp}},
           {{.code = Code::kPushShiftedProduct}, {.code = Code::kCosTurns, .a = 0.3}},
           {{.code = Code::kPushProduct}, {.code = Code::kCosSinTurns, .a = 0.3}}}) {
    programs.push_back(*KernelProgram::FromOps(std::move(ops)));
  }
  return programs;
}

// Some rows of products hold a number that is not finite. Memory outside of the block belongs to
// the caller and must not change.
TYPED_TEST(KernelEvaluatorTest, BlocksHaveTheBitsAndTheVerdictOfRows) {
  using T = TypeParam;
  constexpr int64_t kCount = 200;
  constexpr int64_t kStride = 128;
  constexpr int64_t kFirst = 64;
  constexpr T kUntouched = 12345;
  const Inputs<T> in(kCount + 64);  // the norms are also used as the offsets
  for (const KernelProgram& program : BlockPrograms()) {
    ASSERT_TRUE(EvaluatesBlocks(program));
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      for (const int64_t columns : {1, 5, 16, 31, 32, 64, 70, 128}) {
        const int64_t rows = 7;
        AlignedArray<T> block(rows * kStride);
        const Matrix<T> products = UniformRowsOf<T>({.rows = rows, .cols = kStride, .seed = 3});
        std::copy_n(products.data(), products.size(), block.data());
        block.data()[2 * kStride + columns / 2] = std::numeric_limits<T>::infinity();
        block.data()[4 * kStride + columns - 1] = std::numeric_limits<T>::quiet_NaN();
        std::vector<T> x_norms(rows + 2, in.x_norm);
        Matrix<T> expected(rows + 2, 2 * kCount);
        std::fill_n(expected.data(), expected.size(), kUntouched);
        bool verdict[rows + 2];
        std::fill_n(verdict, rows + 2, true);
        for (int64_t i = 0; i < rows; ++i) {
          std::vector<T> row(2 * columns);
          const T* const norms = in.norms.data() + kFirst;
          EvaluateKernel(program, {block.data() + i * kStride, in.x_norm, norms, norms}, columns,
                         row.data());
          for (int second = 0; second < program.results(); ++second) {
            for (int64_t j = 0; j < columns; ++j) {
              const T value = row[second * columns + j];
              expected(i + 2, second * kCount + kFirst + j) = value;
              if (!std::isfinite(value)) verdict[i + 2] = false;
            }
          }
        }
        Matrix<T> out(rows + 2, 2 * kCount);
        std::fill_n(out.data(), out.size(), kUntouched);
        std::vector<T*> out_rows;
        for (int64_t i = 0; i < rows + 2; ++i) out_rows.push_back(out.row(i));
        bool finite[rows + 2];
        std::fill_n(finite, rows + 2, true);
        EvaluateKernelBlock(program, {x_norms.data(), in.norms.data(), in.norms.data()},
                            {block.data(), kStride, /*first_row=*/2, rows, kFirst, columns}, kCount,
                            out_rows.data(), finite);
        EXPECT_TRUE(SameBits(out, expected)) << target.name << " " << columns;
        EXPECT_TRUE(std::equal(finite, finite + rows + 2, verdict))
            << target.name << " " << columns;
      }
    }
  }
}

TYPED_TEST(KernelEvaluatorTest, OutputMayBeTheProducts) {
  using T = TypeParam;
  Inputs<T> in(130);
  for (const char* text : kKernels) {
    const KernelProgram program = KernelProgram::Compile(MustParseKernel(text));
    const std::vector<T> expected = Evaluate(program, in, 0, 130);
    std::vector<T> inout(in.products.data(), in.products.data() + 130);
    EvaluateKernel(program, {inout.data(), in.x_norm, in.norms.data()}, 130, inout.data());
    EXPECT_EQ(inout, expected) << text;
  }
}

TYPED_TEST(KernelEvaluatorTest, NormsAreNotReadByProgramsWithoutDistances) {
  using T = TypeParam;
  const std::vector<T> products(70, T{2});
  std::vector<T> out(70);
  EvaluateKernel(KernelProgram::Compile(MustParseKernel("poly(degree=3)")),
                 KernelOperands<T>{products.data()}, 70, out.data());
  EXPECT_EQ(out, std::vector<T>(70, T{8}));
}

TYPED_TEST(KernelEvaluatorTest, NegativeDistanceOfRoundOffCountsAsZero) {
  using T = TypeParam;
  const T product = 1 + std::numeric_limits<T>::epsilon();
  const T norm = 1;
  T out = 0;
  EvaluateKernel(KernelProgram::Compile(MustParseKernel("rbf(gamma=1000)")),
                 {&product, T{1}, &norm}, 1, &out);
  EXPECT_EQ(out, T{1});
}

}  // namespace
}  // namespace phimap::testing
