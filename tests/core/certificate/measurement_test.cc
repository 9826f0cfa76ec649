#include "core/certificate/measurement.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/certificate/held_out_features.h"
#include "core/certificate/pair_error.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/plan/plan.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kColumns = 5;

PlanShape ServedShape(FloatType type) {
  return {.serving_type = type,
          .columns = kColumns,
          .shift = true,
          .scale = true,
          .feature_count = 12,
          .w = WKind::kTriangular};
}

// The plan has nothing to do with the kernel, because the measurement must not assume that the two
// belong together.
struct Fixture {
  explicit Fixture(int64_t h)
      : served(MakePlan(ServedShape(FloatType::kFloat32))),
        reference(MakePlan(ServedShape(FloatType::kFloat64))),
        rows(UniformRows({.rows = h, .cols = kColumns, .seed = 21})),
        pivots(UniformRows({.rows = 9, .cols = kColumns, .seed = 22})),
        factor(NaiveKernelMatrix(kernel, pivots, pivots)) {
    const absl::StatusOr<PivotedCholesky> cholesky = FactorPivoted(factor.view(), {}, NeverStop);
    EXPECT_TRUE(cholesky.ok() && cholesky->rank() == 9);
    Matrix<double> ordered = Matrix<double>::Uninit(9, kColumns);
    for (int64_t i = 0; i < 9; ++i) {
      std::copy_n(pivots.row(cholesky->pivots[i]), kColumns, ordered.row(i));
    }
    pivots = std::move(ordered);
    x = AfterInputStage(reference.input, rows.view());
  }
  MeasurementTask Task() const {
    return {.served = &served,
            .reference = &reference,
            .rows = rows.view(),
            .kernel = KernelProgram::Compile(kernel),
            .pivots = pivots.view(),
            .factor = factor.view()};
  }
  KernelExpression kernel = MustParseKernel("rbf(gamma=0.8)");
  Plan served;
  Plan reference;
  Matrix<double> rows;
  Matrix<double> pivots;
  Matrix<double> factor;
  Matrix<double> x;
};

TEST(MeasurementTest, InputStageShiftsScalesAndProjects) {
  const Plan plan = MakePlan({.columns = 6, .shift = true, .scale = true, .projected = 3});
  const Matrix<double> rows = UniformRows({.rows = 8, .cols = 6, .seed = 1});
  const Matrix<double> x = AfterInputStage(plan.input, rows.view());
  ASSERT_EQ(x.cols(), 3);
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 6; ++k) {
        sum +=
            (rows(i, k) - plan.input.shift[k]) * plan.input.scale[k] * plan.input.projection(k, j);
      }
      EXPECT_NEAR(x(i, j), sum, 1e-15);  // a sum of six terms, each under 1/3
    }
  }
}

TEST(MeasurementTest, FeaturesAreTheEngines) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    const Plan plan = MakePlan(ServedShape(type));
    const Matrix<double> rows = UniformRows({.rows = 60, .cols = kColumns, .seed = 2});
    EXPECT_TRUE(SameBits(*FeaturesOf(plan, rows.view(), NeverStop),
                         MustTransformWide(plan, WireRows(rows))));
  }
}

TEST(MeasurementTest, FeaturesCanBeStoppedBetweenTiles) {
  const Plan plan = MakePlan(ServedShape(FloatType::kFloat32));
  const Matrix<double> rows = UniformRows({.rows = 60, .cols = kColumns, .seed = 2});
  ExpectStopsAt(
      1, [&](Checkpoint checkpoint) { return FeaturesOf(plan, rows.view(), checkpoint).status(); });
}

double NaiveEffectiveRows(const std::vector<double>& sums) {
  double sum = 0;
  double squares = 0;
  for (const double r : sums) {
    sum += r;
    squares += r * r;
  }
  return sum * sum / squares;
}

TEST(MeasurementTest, EveryNumberIsItsDefinition) {
  int stated = 0;
  for (const int64_t h : {20, 255, 256, 257, 300}) {
    const Fixture f(h);
    Certificate certificate;
    ASSERT_TRUE(MeasureHeldOut(f.Task(), NeverStop, certificate).ok());
    const Matrix<double> served = MustTransformWide(f.served, WireRows(f.rows));
    const Matrix<double> reference = MustTransformWide(f.reference, WireRows(f.rows));

    ASSERT_TRUE(certificate.serving_error.has_value());
    double sum = 0;
    double max = 0;
    double scale = 0;
    for (int64_t i = 0; i < h; ++i) {
      double difference = 0;
      double norm = 0;
      for (int64_t j = 0; j < served.cols(); ++j) {
        difference += std::pow(served(i, j) - reference(i, j), 2);
        norm += std::pow(reference(i, j), 2);
      }
      sum += std::sqrt(difference);
      max = std::max(max, std::sqrt(difference));
      scale = std::max(scale, std::sqrt(norm));
    }
    EXPECT_NEAR(certificate.serving_error->mean, sum / static_cast<double>(h), 1e-18);
    EXPECT_NEAR(certificate.serving_error->max, max, 1e-18);
    EXPECT_NEAR(certificate.serving_error->scale, scale, 1e-14);
    EXPECT_EQ(certificate.serving_error->count, h);
    EXPECT_GT(max, 0);

    // Each row is paired with all rows before it in its own tile of 128 rows and in the previous
    // tile. The kernel K is computed in float64 on rows after the input stage. The features are the
    // served ones.
    ASSERT_TRUE(certificate.kernel_error.has_value());
    sum = max = 0;
    int64_t pairs = 0;
    RowErrors by_row(h);
    std::vector<double> kernel_squares(static_cast<size_t>(h));
    std::vector<double> error_squares(static_cast<size_t>(h));
    for (int64_t i = 0; i < h; ++i) {
      for (int64_t j = std::max<int64_t>(0, i / 128 * 128 - 128); j < i; ++j) {
        ++pairs;
        double dot = 0;
        for (int64_t k = 0; k < served.cols(); ++k) dot += served(i, k) * served(j, k);
        const auto k =
            static_cast<double>(NaiveKernel(f.kernel.root(), f.x.row(i), f.x.row(j), kColumns));
        sum += std::abs(k - dot);
        for (const int64_t row : {i, j}) {
          kernel_squares[static_cast<size_t>(row)] += k * k;
          error_squares[static_cast<size_t>(row)] += (k - dot) * (k - dot);
        }
        for (const int64_t row : {i, j}) {
          by_row.sums[row] += std::abs(k - dot);
          ++by_row.counts[row];
        }
        max = std::max(max, std::abs(k - dot));
      }
    }
    EXPECT_EQ(certificate.kernel_error->count, pairs);
    EXPECT_NEAR(certificate.kernel_error->mean, sum / static_cast<double>(pairs), 1e-13);
    EXPECT_NEAR(certificate.kernel_error->max, max, 1e-13);
    EXPECT_EQ(certificate.kernel_error->scale, 1);  // K(x, x) of an rbf kernel

    // The pairs that share no row: rows 0 and 1, rows 2 and 3, and so on.
    std::vector<double> disjoint;
    for (int64_t i = 1; i < h; i += 2) {
      double dot = 0;
      for (int64_t k = 0; k < served.cols(); ++k) dot += served(i, k) * served(i - 1, k);
      disjoint.push_back(std::abs(
          static_cast<double>(NaiveKernel(f.kernel.root(), f.x.row(i), f.x.row(i - 1), kColumns)) -
          dot));
    }
    ASSERT_TRUE(certificate.kernel_error_bound.has_value());
    EXPECT_EQ(certificate.kernel_error_bound->pairs, h / 2);
    EXPECT_NEAR(certificate.kernel_error_bound->largest,
                *std::max_element(disjoint.begin(), disjoint.end()), 1e-13);
    // The interval is computed from by_row, where the error of each pair was added to both of its
    // rows.
    const std::optional<MeanInterval> interval = JackknifeInterval(by_row);
    ASSERT_TRUE(interval.has_value());
    const double of_kernel = NaiveEffectiveRows(kernel_squares);
    const double of_error = NaiveEffectiveRows(error_squares);
    ASSERT_TRUE(certificate.effective_rows.has_value());
    EXPECT_NEAR(certificate.effective_rows->kernel, of_kernel, 1e-9 * of_kernel);
    EXPECT_NEAR(certificate.effective_rows->error, of_error, 1e-9 * of_error);
    // With fewer effective rows than 50 no interval is stated.
    ASSERT_EQ(certificate.kernel_error_interval.has_value(), of_kernel >= 50 && of_error >= 50);
    stated += certificate.kernel_error_interval.has_value() ? 1 : 0;
    if (certificate.kernel_error_interval.has_value()) {
      EXPECT_NEAR(certificate.kernel_error_interval->low, interval->low, 1e-12);
      EXPECT_NEAR(certificate.kernel_error_interval->high, interval->high, 1e-12);
    }
    EXPECT_LT(interval->low, certificate.kernel_error->mean);
    EXPECT_GT(interval->high, certificate.kernel_error->mean);
    EXPECT_FALSE(certificate.kernel_error_half_width.has_value());

    double squares = 0;
    for (int64_t i = 0; i < served.size(); ++i) squares += std::pow(served.data()[i], 2);
    ASSERT_TRUE(certificate.mean_squared_norm.has_value());
    EXPECT_NEAR(*certificate.mean_squared_norm, squares / static_cast<double>(h), 1e-12);

    // The residual of a row x is K(x, x) − ‖L⁻¹k(x)‖². L is the triangular factor of the landmarks'
    // kernel matrix, and k(x) is the vector of kernel values of x. L⁻¹k(x) is computed by forward
    // substitution.
    double residual = 0;
    for (int64_t i = 0; i < h; ++i) {
      std::vector<double> solved(9);
      double projected = 0;
      for (int64_t r = 0; r < 9; ++r) {
        auto value = static_cast<double>(
            NaiveKernel(f.kernel.root(), f.pivots.row(r), f.x.row(i), kColumns));
        for (int64_t c = 0; c < r; ++c) value -= f.factor(r, c) * solved[c];
        solved[r] = value / f.factor(r, r);
        projected += solved[r] * solved[r];
      }
      residual += std::max(0.0, 1 - projected);
    }
    ASSERT_TRUE(certificate.held_out_trace_residual.has_value());
    EXPECT_NEAR(*certificate.held_out_trace_residual, residual / static_cast<double>(h), 1e-12);
    EXPECT_TRUE(certificate.warnings.empty());
  }
  EXPECT_GE(stated, 2);
  EXPECT_LT(stated, 5);  // 20 rows are never enough
}

TEST(MeasurementTest, WithoutAKernelOnlyTheServingErrorIsMeasured) {
  const Fixture f(30);
  MeasurementTask task = f.Task();
  task.kernel = std::nullopt;
  Certificate certificate;
  ASSERT_TRUE(MeasureHeldOut(task, NeverStop, certificate).ok());
  EXPECT_TRUE(certificate.serving_error.has_value());
  EXPECT_FALSE(certificate.kernel_error.has_value());
  EXPECT_FALSE(certificate.held_out_trace_residual.has_value());
}

TEST(MeasurementTest, UnderTwentyRowsNothingIsMeasuredAndItSaysSo) {
  for (const int64_t h : {0, 1, 19}) {
    const Fixture f(h);
    Certificate certificate;
    ASSERT_TRUE(MeasureHeldOut(f.Task(), NeverStop, certificate).ok());
    EXPECT_FALSE(certificate.serving_error.has_value());
    EXPECT_FALSE(certificate.kernel_error.has_value());
    EXPECT_FALSE(certificate.held_out_trace_residual.has_value());
    ASSERT_EQ(certificate.warnings.size(), 1u);
    EXPECT_NE(certificate.warnings[0].find("not measured"), std::string::npos);
    EXPECT_NE(certificate.warnings[0].find(std::to_string(h)), std::string::npos);
  }
}

TEST(MeasurementTest, OverflowOfHeldOutRowsIsAnErrorOfTheServingType) {
  Fixture f(30);
  for (int64_t k = 0; k < kColumns; ++k) f.rows(17, k) = 1e200;
  Certificate certificate;
  EXPECT_THAT(MeasureHeldOut(f.Task(), NeverStop, certificate),
              IsError(StatusCode::kFailedPrecondition, "VALUE_NOT_REPRESENTABLE", "serving_type"));
}

TEST(MeasurementTest, StopsAtAnyCheckpointAndFractionsNeverFall) {
  const Fixture f(600);
  const std::vector<double> shares = ExpectStopsEverywhere([&](Checkpoint checkpoint) {
    Certificate certificate;
    return MeasureHeldOut(f.Task(), checkpoint, certificate);
  });
  EXPECT_GE(shares.size(), 8u);
}

}  // namespace
}  // namespace phimap::testing
