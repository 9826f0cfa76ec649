// What is said of the rounding of kernel values, against engines of the real thing: the same
// values in float32, of the products and norms that the engine makes.
#include "core/kernel/kernel_rounding.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/plan/engine.h"
#include "core/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::NormalRows;

constexpr double kUnit = 0x1p-24;

struct Case {
  const char* kernel;
  int64_t columns;
  // Rows are centre + spread·N(0, 1).
  double centre;
  double spread;
  // The bound is no more than this many times the largest error seen: it says something.
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
  const auto engine = Engine::Load(plan);
  EXPECT_TRUE(engine.ok()) << engine.status();
  Matrix<float> values(x.rows(), a.rows());
  TransformPart part{.rows = testing::WireRows(x), .features = values.data()};
  EngineScratch scratch;
  (*engine)->Transform(absl::MakeSpan(&part, 1), scratch);
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
    const KernelExpression kernel = testing::MustParseKernel(c.kernel);
    const KernelProgram program = KernelProgram::Compile(kernel);
    const Matrix<double> a = RowsOf(c, 40, 1);
    const Matrix<double> x = RowsOf(c, 300, 2);
    const KernelRounding rounding(program, a.view(), kUnit);
    const Matrix<float> values = KernelValuesInFloat32(program, x, a);
    const Matrix<double> exact = testing::NaiveKernelMatrix(kernel, x, a);
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

TEST(KernelRoundingTest, WhatCannotBeBoundedIsInfinite) {
  // 1/t of a t that can be 0.
  RoundedOperands operands;
  operands.product = {-1, 1, 4, 0};
  const RoundedValue value = CarryRounding(
      {{.code = KernelOpCode::kPushProduct}, {.code = KernelOpCode::kInverse}}, operands, kUnit);
  EXPECT_TRUE(std::isinf(value.absolute));
}

TEST(KernelRoundingTest, AnExpWhoseDigitsAreGoneErrsByItselfAndNoMore) {
  // exp(−γd) of a distance that is off by 1e9·u·γ > 1.
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
}  // namespace phimap
