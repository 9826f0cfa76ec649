#include "core/learn/learned_scales.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_program.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/support/checkpoints.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// f_j(x) for each output j, from kernel values.
std::vector<double> ValuesAt(const KernelExpression& kernel, const Matrix<double>& landmarks,
                             const Matrix<double>& v, ConstMatrixView<double> x) {
  Matrix<double> values(1, landmarks.rows());
  KernelBlock(KernelProgram::Compile(kernel), x, SquaredNorms(x), landmarks.view(),
              SquaredNorms(landmarks.view()), values.view());
  std::vector<double> out(static_cast<size_t>(v.cols()));
  for (int64_t j = 0; j < v.cols(); ++j) {
    for (int64_t i = 0; i < v.rows(); ++i) out[j] += v(i, j) * values(0, i);
  }
  return out;
}

// Central differences of step h err by about h²·|f'''|/6 + 2⁻⁵³·Σ|v|/h, which is under 1e-8 here,
// and gradients are of order 0.1 to 1. With laplacian and matern(nu=0.5) the rows keep away from
// the kinks at the landmarks by more than h.
TEST(LearnedScalesTest, GradientsAreThoseOfDifferences) {
  const Matrix<double> landmarks = UniformRows({.rows = 12, .cols = 4, .seed = 1});
  const Matrix<double> v = NormalRows({.rows = 12, .cols = 3, .seed = 2});
  const Matrix<double> rows = UniformRows({.rows = 9, .cols = 4, .seed = 3});
  constexpr double kStep = 1e-5;
  for (const char* text :
       {"rbf(gamma=0.7)", "2.5*rbf(scales=[1, 2, 0.5, 3])", "laplacian(gamma=0.3)",
        "laplacian(scales=[1, 2, 0.5, 3])", "matern(nu=0.5, length_scale=2)",
        "matern(nu=1.5, length_scale=0.7, scales=[1, 2, 0.5, 3])", "matern(nu=2.5)",
        "rational_quadratic(alpha=0.8, length_scale=1.3)"}) {
    const KernelExpression kernel = KernelExpression::Parse(text).value();
    const std::vector<double> diagonal =
        AverageSquaredGradient(kernel, landmarks.view(), v.view(), rows.view(), NeverStop).value();
    for (int64_t k = 0; k < 4; ++k) {
      double mean = 0;
      for (int64_t i = 0; i < 9; ++i) {
        Matrix<double> x(1, 4);
        std::copy_n(rows.row(i), 4, x.row(0));
        x(0, k) = rows(i, k) + kStep;
        const std::vector<double> above = ValuesAt(kernel, landmarks, v, x.view());
        x(0, k) = rows(i, k) - kStep;
        const std::vector<double> below = ValuesAt(kernel, landmarks, v, x.view());
        for (size_t j = 0; j < 3; ++j) {
          mean += std::pow((above[j] - below[j]) / (2 * kStep), 2) / 27;
        }
      }
      EXPECT_NEAR(diagonal[k], mean, 1e-6 * std::max(1.0, mean)) << text << " column " << k;
    }
  }
}

// matern(nu=0.5) has no gradient where a row equals a landmark, and 0 is taken.
TEST(LearnedScalesTest, ARowThatIsALandmarkHasAFiniteGradient) {
  const Matrix<double> landmarks = UniformRows({.rows = 5, .cols = 2, .seed = 1});
  const Matrix<double> v = NormalRows({.rows = 5, .cols = 1, .seed = 2});
  for (const char* text : {"matern(nu=0.5)", "laplacian(gamma=1)"}) {
    const std::vector<double> diagonal =
        AverageSquaredGradient(KernelExpression::Parse(text).value(), landmarks.view(), v.view(),
                               landmarks.view(), NeverStop)
            .value();
    for (const double value : diagonal) EXPECT_TRUE(std::isfinite(value)) << text;
  }
}

TEST(LearnedScalesTest, OtherKernelsAreRefusedWithThoseThatHaveScales) {
  const Matrix<double> rows = UniformRows({.rows = 5, .cols = 2, .seed = 1});
  const Matrix<double> v(5, 1);
  const auto status = [&](const char* text) {
    return AverageSquaredGradient(KernelExpression::Parse(text).value(), rows.view(), v.view(),
                                  rows.view(), NeverStop)
        .status();
  };
  for (const char* text :
       {"poly(degree=2)", "rbf(gamma=1) + linear()", "rbf(gamma=1, columns=0)"}) {
    EXPECT_THAT(status(text), IsError(StatusCode::kInvalidArgument, "KERNEL_NOT_APPLICABLE",
                                      "kernel", HasSubstr("rational_quadratic")));
  }
  EXPECT_EQ(ReasonOf(status("rbf(gamma=scale)")), "GAMMA_UNRESOLVED");
  EXPECT_EQ(ReasonOf(status("rbf(scales=[1, 1, 1])")), "COLUMNS_MISMATCH");
}

// Friedman's function of five columns, with five and twenty more that it does not depend on, all
// with the deviation 1. Its noise has the deviation 1.
LabeledRows StandardFriedman(int64_t n, uint64_t seed) {
  LabeledRows rows = FriedmanRows(n, 30, seed);
  for (int64_t i = 0; i < rows.rows.size(); ++i) {
    rows.rows.data()[i] = (rows.rows.data()[i] - 0.5) * std::sqrt(12.0);
  }
  return rows;
}

TEST(LearnedScalesTest, LearningStopsWhereTheCheckpointSays) {
  const LabeledRows train = StandardFriedman(300, 1);
  const LabeledRows validate = StandardFriedman(50, 9);
  const KernelExpression kernel = KernelExpression::Parse("rbf(gamma=0.03)").value();
  const auto learn = [&](Checkpoint checkpoint) {
    return LearnScales(kernel, train.set(), validate.set(), {.landmarks = 20, .rounds = 1},
                       checkpoint)
        .status();
  };
  for (const size_t stop : {1, 2, 7, 30, 70, 100}) ExpectStopsAt(stop, learn);
}

TEST(LearnedScalesTest, NoiseColumnsAddedToFriedmansFunctionAreLeftOut) {
  const LabeledRows train = StandardFriedman(1600, 1);
  const LabeledRows validate = StandardFriedman(400, 9);
  const LabeledRows test = StandardFriedman(1000, 17);
  // The share of the error that may be left. laplacian loses less to noise columns in the first
  // place, and fits a smooth function less well.
  const struct {
    const char* text;
    double share;
  } kCases[] = {{"rbf(gamma=0.0333)", 0.7},
                {"laplacian(gamma=0.02)", 0.75},
                {"matern(nu=2.5, length_scale=5)", 0.7},
                {"2*rational_quadratic(length_scale=5)", 0.7}};
  for (const auto& [text, share] : kCases) {
    SCOPED_TRACE(text);
    const KernelExpression kernel = KernelExpression::Parse(text).value();
    const LearnedScales learned =
        LearnScales(kernel, train.set(), validate.set(), {.landmarks = 300, .seed = 3}, NeverStop)
            .value();
    ASSERT_EQ(learned.trials.size(), 10u);
    EXPECT_EQ(learned.trials[0].kernel.ToText(), kernel.ToText());
    // The test rows, which no choice of scales has seen, as validation rows of each kernel alone.
    const auto error = [&](const KernelExpression& one) {
      return LearnScales(one, train.set(), test.set(), {.landmarks = 300, .rounds = 0, .seed = 3},
                         NeverStop)
          ->trials[0]
          .error;
    };
    const double with = std::sqrt(error(learned.trials[learned.best].kernel));
    const double without = std::sqrt(error(kernel));
    EXPECT_LE(with, share * without);
    EXPECT_GT(with, 0.9);
  }
}

}  // namespace
}  // namespace phimap::testing
