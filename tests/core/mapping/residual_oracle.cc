#include "tests/core/mapping/residual_oracle.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "core/engine/engine.h"
#include "core/plan/plan.h"
#include "core/plan/residual.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// Replaces the lower triangle of `gram` by its Cholesky factor L.
void FactorWide(std::vector<WideRow>& gram) {
  for (size_t i = 0; i < gram.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      Wide sum = gram[i][j];
      for (size_t m = 0; m < j; ++m) sum -= gram[i][m] * gram[j][m];
      ASSERT_TRUE(i != j || sum > 0) << i;
      gram[i][j] = i == j ? WideSqrt(sum) : sum / gram[j][j];
    }
  }
}

// Returns ρ of each query: K(x, x) − ‖y‖², where L·y = k(x).
std::vector<Wide> ExactResiduals(Compared& c) {
  FactorWide(c.gram);
  std::vector<Wide> exact;
  for (size_t i = 0; i < c.cross.size(); ++i) {
    WideRow y = c.cross[i];
    Wide left = c.among[i][i];
    for (size_t j = 0; j < y.size(); ++j) {
      for (size_t m = 0; m < j; ++m) y[j] -= c.gram[j][m] * y[m];
      y[j] /= c.gram[j][j];
      left -= y[j] * y[j];
    }
    exact.push_back(left);
  }
  return exact;
}

void ComparePairs(const Compared& c, Found& found) {
  for (int64_t i = 0; i < c.features.rows(); ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      Wide error = c.among[i][j];
      for (int64_t f = 0; f < c.features.cols(); ++f) {
        error -= Wide{1} * c.features(i, f) * c.features(j, f);
      }
      const auto size = static_cast<double>(WideAbs(error));
      const double bound =
          std::sqrt(c.residuals[i] + c.allowances[i]) * std::sqrt(c.residuals[j] + c.allowances[j]);
      ASSERT_LE(size, bound) << i << ", " << j;
      if (bound > 0) found.pair = std::max(found.pair, size / bound);
      if (size > std::sqrt(c.residuals[i] * c.residuals[j])) ++found.bare;
    }
  }
}

template <typename T>
std::vector<WideRow> LandmarksOf(const ServingStages<T>& stages) {
  std::vector<WideRow> landmarks;
  const auto* features = std::get_if<ProductFeatures<T>>(&stages.features);
  if (features == nullptr || !std::holds_alternative<TriangularProjection<T>>(stages.projection)) {
    return landmarks;
  }
  for (int64_t i = 0; i < features->rows.rows(); ++i) {
    landmarks.emplace_back(features->rows.row(i), features->rows.row(i) + features->rows.cols());
  }
  return landmarks;
}

}  // namespace

double MedianOf(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

Found Compare(Compared c) {
  const std::vector<Wide> exact = ExactResiduals(c);
  Found found;
  std::vector<double> shares;
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto self = static_cast<double>(c.among[i][i]);
    EXPECT_GE(c.residuals[i], 0) << i;
    EXPECT_LE(c.residuals[i], self * (1 + 0x1p-40)) << i;
    const auto error = static_cast<double>(WideAbs(c.residuals[i] - exact[i]));
    EXPECT_LE(error, c.allowances[i]) << i;
    if (c.allowances[i] > 0) found.row = std::max(found.row, error / c.allowances[i]);
    shares.push_back(c.allowances[i] / self);
  }
  found.allowance = MedianOf(shares);
  ComparePairs(c, found);
  return found;
}

void Serve(const Artifact& artifact, const ExamplesView& queries, Compared& c) {
  const auto engine = Engine::Load(artifact.plan).value();
  const std::optional<Residual> residual = Residual::Of(artifact.plan, artifact.provenance);
  ASSERT_TRUE(residual.has_value());
  const int64_t columns = engine->output_columns();
  Matrix<double> wide(queries.rows(), columns);
  Matrix<float> narrow(queries.rows(), columns);
  const bool is_narrow = artifact.plan.serving_type() == FloatType::kFloat32;
  void* const features =
      is_narrow ? static_cast<void*>(narrow.data()) : static_cast<void*>(wide.data());
  TransformPart part{.rows = queries, .features = features, .status = absl::OkStatus()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  ASSERT_TRUE(part.status.ok()) << part.status;
  c.residuals.resize(static_cast<size_t>(queries.rows()));
  c.allowances.resize(c.residuals.size());
  residual->Compute(queries, features, c.residuals.data(), c.allowances.data());
  c.features = is_narrow ? Converted<double, float>(narrow.view()) : std::move(wide);
}

std::vector<WideRow> WideLandmarks(const Plan& plan) {
  return std::visit([](const auto& stages) { return LandmarksOf(stages); }, plan.stages);
}

std::vector<WideRow> WideRowsOf(const Matrix<double>& rows) {
  std::vector<WideRow> wide;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    wide.emplace_back(rows.row(i), rows.row(i) + rows.cols());
  }
  return wide;
}

Matrix<double> AsServed(const Plan& plan, const Matrix<double>& rows) {
  Matrix<double> x = AfterInputStage(plan.input, rows.view());
  if (plan.serving_type() == FloatType::kFloat64) return x;
  return Converted<double, float>(Converted<float, double>(x.view()).view());
}

}  // namespace phimap::testing
