// Checks the claimed bounds on the rounding of kernel values. Real engines compute these values in
// float32 from their own products and norms.
#include "core/kernel/kernel_rounding.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/string_kernel.h"
#include "core/plan/plan.h"
#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr double kUnit = 0x1p-24;

struct Case {
  const char* kernel;
  int64_t columns;
  // Rows are centre + spread·N(0, 1).
  double centre;
  double spread;
  // The bound is at most this many times the largest error seen, so that it is not far too large.
  double slack;
};

const Case kCases[] = {
    {"linear()", 8, 0, 1, 30},
    {"linear()", 512, 1, 0.2, 30},
    {"poly(degree=3, gamma=0.5, coef0=1)", 4, 0, 1, 100},
    {"poly(degree=64)", 1, 1.25, 0.08, 30},
    {"rbf(gamma=0.1)", 8, 0, 1, 100},
    {"rbf(gamma=1)", 2, 30, 1, 30},
    {"laplacian(gamma=0.3)", 6, 0, 1, 100},
    {"exp(2*linear())", 2, 2.5, 1e-2, 30},
    {"exp(40*rbf(gamma=0.1))", 2, 2.5, 1e-2, 100},
    {"exp(-1*poly(degree=2))", 1, 1, 0.3, 300},
    {"sigmoid(gamma=0.7, coef0=0.2)", 5, 0, 1, 100},
    {"cosine()", 5, 0, 1, 100},
    {"normalize(poly(degree=4, coef0=1))", 3, 0, 1, 1000},
    {"weight(norm_power=16)*linear()", 1, 1, 0.1, 100},
    {"weight(norm_power=-3)*rbf(gamma=0.2)", 4, 1, 0.3, 300},
    {"bilinear(matrix=[2, 1; 1, 3])", 2, 0, 1, 100},
    {"rbf(gamma=1e-4)*poly(degree=30)", 1, 1, 0.02, 100},
    {"rbf(gamma=0.1) + -1*laplacian(gamma=0.1)", 4, 0, 1, 100},
};

Matrix<double> RowsOf(const Case& c, int64_t count, uint64_t seed) {
  Matrix<double> rows = NormalRows({.rows = count, .cols = c.columns, .seed = seed});
  for (int64_t k = 0; k < rows.size(); ++k) {
    rows.data()[k] = static_cast<float>(c.centre + c.spread * rows.data()[k]);
  }
  return rows;
}

Matrix<float> KernelValuesInFloat32(const KernelProgram& program, const Matrix<double>& x,
                                    const Matrix<double>& a) {
  ServingStages<float> stages;
  stages.features = ProductFeatures<float>{Converted<float, double>(a.view()), program, {}};
  Plan plan;
  plan.input.columns = x.cols();
  plan.stages = std::move(stages);
  const auto engine = Engine::Load(plan).value();
  Matrix<float> values(x.rows(), a.rows());
  TransformPart part{.rows = WireRows(x), .features = values.data()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_TRUE(part.status.ok()) << part.status;
  return values;
}

double SquaredLength(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += x[k] * x[k];
  return sum;
}

TEST(KernelRoundingTest, BoundsTheErrorOfEveryKernelInFloat32AndIsNotFarFromIt) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.kernel);
    const KernelExpression kernel = MustParseKernel(c.kernel);
    const KernelProgram program = KernelProgram::Compile(kernel);
    const Matrix<double> a = RowsOf(c, 40, 1);
    const Matrix<double> x = RowsOf(c, 300, 2);
    const KernelRounding rounding(program, a.view(), kUnit);
    const Matrix<float> values = KernelValuesInFloat32(program, x, a);
    const Matrix<double> exact = NaiveKernelMatrix(kernel, x, a);
    double closest = 0;
    for (int64_t i = 0; i < x.rows(); ++i) {
      double largest = 0;
      double error = 0;
      for (int64_t j = 0; j < a.rows(); ++j) {
        largest = std::max(largest, std::abs(exact(i, j)));
        error = std::max(error, std::abs(values(i, j) - exact(i, j)));
      }
      const double bound =
          kUnit * rounding.Of(x.row(i), SquaredLength(x.row(i), x.cols()), largest);
      ASSERT_LE(error, bound) << "row " << i;
      closest = std::max(closest, error / bound);
    }
    EXPECT_GT(closest, 1 / c.slack);
  }
}

// Returns strings of a few repeated letters, in which n-grams occur from once to some hundreds of
// times.
std::vector<std::string> Strings(int64_t count, uint64_t seed) {
  const RandomStream random(seed, StreamId::kSelfCheck);
  std::vector<std::string> strings(static_cast<size_t>(count));
  uint64_t draw = 0;
  for (std::string& string : strings) {
    string.resize(3 + random.UniformBelow(draw++, 400));
    for (char& c : string) c = static_cast<char>('a' + random.UniformBelow(draw++, 3));
  }
  return strings;
}

Matrix<float> StringValuesInFloat32(const KernelProgram& program, const std::vector<std::string>& x,
                                    const std::vector<std::string>& a) {
  ServingStages<float> stages;
  stages.features = StringFeatures{.strings = a, .program = program};
  Plan plan;
  plan.input.columns = 0;
  plan.stages = std::move(stages);
  const auto engine = Engine::Load(plan).value();
  std::vector<const std::string*> named;
  for (const std::string& string : x) named.push_back(&string);
  const auto rows = static_cast<int64_t>(x.size());
  Matrix<float> values(rows, static_cast<int64_t>(a.size()));
  TransformPart part{.rows = StringsView{ExampleKind::kText, named.data(), rows, 0},
                     .features = values.data()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_TRUE(part.status.ok()) << part.status;
  return values;
}

TEST(KernelRoundingTest, BoundsTheErrorOfKernelsOfStringsToo) {
  const std::vector<std::string> a = Strings(40, 1);
  const std::vector<std::string> x = Strings(200, 2);
  for (const char* text :
       {"spectrum(n=5)", "jaccard(n=6)", "normalize(spectrum(n=4))", "exp(3*jaccard(n=6))",
        "0.3*spectrum(n=2)*spectrum(n=3)*jaccard(n=5)",
        "normalize(spectrum(n=2) + 0.7*jaccard(n=4, unit=byte) + weight(constant=3))"}) {
    SCOPED_TRACE(text);
    const KernelExpression kernel = MustParseKernel(text);
    const KernelProgram program = KernelProgram::Compile(kernel);
    const auto kernels = static_cast<int64_t>(program.strings().size());
    NgramCounts scratch;
    Matrix<double> squares(40, kernels);
    for (int64_t j = 0; j < 40; ++j) {
      StringSquares(program.strings(), a[j], scratch, squares.row(j));
    }
    const KernelRounding rounding(program, squares.view(), kUnit);
    const Matrix<float> values = StringValuesInFloat32(program, x, a);
    // The reference values are float64, which is nearly exact.
    auto all = std::make_shared<std::vector<std::string>>(x);
    all->insert(all->end(), a.begin(), a.end());
    Matrix<double> places(240, 1);
    for (int64_t i = 0; i < 240; ++i) places(i, 0) = static_cast<double>(i);
    const ConstMatrixView<double> view = std::as_const(places).view();
    Matrix<double> exact(200, 40);
    KernelBlock(KernelProgram::Compile(kernel.Over(all)), view.Rows(0, 200),
                std::vector<double>(200), view.Rows(200, 40), std::vector<double>(40),
                exact.view());
    double closest = 0;
    std::vector<double> square(static_cast<size_t>(kernels));
    for (int64_t i = 0; i < 200; ++i) {
      double largest = 0;
      double error = 0;
      for (int64_t j = 0; j < 40; ++j) {
        largest = std::max(largest, std::abs(exact(i, j)));
        error = std::max(error, std::abs(values(i, j) - exact(i, j)));
      }
      StringSquares(program.strings(), x[i], scratch, square.data());
      const double bound = kUnit * rounding.Of(square.data(), 0, largest);
      ASSERT_LE(error, bound) << "row " << i;
      closest = std::max(closest, bound > 0 ? error / bound : 0);
    }
    // Counts under 2^24 are exact in float32 too.
    if (std::string(text) != "spectrum(n=5)") {
      EXPECT_GT(closest, 0.02);
    }
  }
}

TEST(KernelRoundingTest, WhatCannotBeBoundedIsInfinite) {
  // 1/t, where t can be 0 within its error.
  RoundedOperands operands;
  operands.product = {-1, 1, 4, 0};
  const RoundedValue value = CarryRounding(
      {{.code = KernelOpCode::kPushProduct}, {.code = KernelOpCode::kInverse}}, operands, kUnit);
  EXPECT_TRUE(std::isinf(value.absolute));
}

TEST(KernelRoundingTest, AnExpWhoseDigitsAreGoneErrsByItselfAndNoMore) {
  // Tests exp(−γd) if the distance d has a large error: 1e9·u, with 1e9·u·γ > 1.
  RoundedOperands operands;
  operands.squared_distance = {0, 1e9, 1e9, 0};
  const RoundedValue value = CarryRounding({{.code = KernelOpCode::kPushSquaredDistance},
                                            {.code = KernelOpCode::kScale, .a = -1},
                                            {.code = KernelOpCode::kExp}},
                                           operands, kUnit);
  EXPECT_GE(kUnit * value.error(), 1);
  EXPECT_LE(kUnit * value.error(), 1.001);
}

}  // namespace
}  // namespace phimap::testing
