// Where all rows are landmarks of F2, ridge and its variance are the Gaussian process of the
// kernel.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/head/head_variance.h"
#include "core/learn/ridge.h"
#include "core/plan/artifact.h"
#include "core/plan/residual.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Features of rows, and the ρ of each.
struct WithResiduals {
  Matrix<double> features;
  std::vector<double> residuals;
};

WithResiduals MapRows(const BuiltVersion& version, const Matrix<double>& rows) {
  const Artifact artifact = DecodeArtifact(version.bytes).value();
  WithResiduals mapped{.features = MustTransformWide(artifact.plan, WireRows(rows)),
                       .residuals = std::vector<double>(static_cast<size_t>(rows.rows()))};
  const Residual residual = Residual::Of(artifact.plan, artifact.provenance).value();
  if (residual.serving_type() == FloatType::kFloat64) {
    residual.Compute(WireRows(rows), mapped.features.data(), mapped.residuals.data(), nullptr);
  } else {
    const Matrix<float> narrow = Converted<float, double>(mapped.features.view());
    residual.Compute(WireRows(rows), narrow.data(), mapped.residuals.data(), nullptr);
  }
  return mapped;
}

LabeledRows FirstRows(const LabeledRows& from, int64_t count) {
  LabeledRows rows{.rows = Matrix<double>(count, from.rows.cols()),
                   .labels = {},
                   .targets = {from.targets.begin(), from.targets.begin() + count}};
  std::copy_n(from.rows.data(), rows.rows.size(), rows.rows.data());
  return rows;
}

// The process itself: mean ȳ + kᵀ(K + λI)⁻¹(y − ȳ), variance s²·(K(x, x) − kᵀ(K + λI)⁻¹k), with s²
// = (y − ȳ)ᵀ(K + λI)⁻¹(y − ȳ)/n, by a Cholesky factor in long double.
class ExactProcess {
 public:
  ExactProcess(const LabeledRows& rows, double gamma, double noise)
      : rows_(rows), gamma_(gamma), n_(static_cast<size_t>(rows.rows.rows())) {
    for (const double target : rows.targets) mean_ += target;
    mean_ /= static_cast<long double>(n_);
    for (size_t i = 0; i < n_; ++i) {
      factor_.emplace_back(i + 1);
      for (size_t j = 0; j <= i; ++j) {
        long double sum = Kernel(rows.rows.row(i), rows.rows.row(j)) + (i == j ? noise : 0.0L);
        for (size_t k = 0; k < j; ++k) sum -= factor_[i][k] * factor_[j][k];
        factor_[i][j] = i == j ? std::sqrt(sum) : sum / factor_[j][j];
      }
      targets_.push_back(rows.targets[i] - mean_);
    }
    targets_ = Solved(targets_);
    for (const long double t : targets_) scale_ += t * t / static_cast<long double>(n_);
  }

  // Mean and variance at x.
  std::pair<double, double> At(const double* x) const {
    std::vector<long double> k;
    for (size_t i = 0; i < n_; ++i) k.push_back(Kernel(rows_.rows.row(i), x));
    k = Solved(std::move(k));
    long double mean = mean_;
    long double left = 1;
    for (size_t i = 0; i < n_; ++i) {
      mean += k[i] * targets_[i];
      left -= k[i] * k[i];
    }
    return {static_cast<double>(mean), static_cast<double>(scale_ * left)};
  }

 private:
  long double Kernel(const double* x, const double* y) const {
    long double square = 0;
    for (int64_t k = 0; k < rows_.rows.cols(); ++k) {
      square += (static_cast<long double>(x[k]) - y[k]) * (static_cast<long double>(x[k]) - y[k]);
    }
    return std::exp(-gamma_ * square);
  }
  // L⁻¹b.
  std::vector<long double> Solved(std::vector<long double> b) const {
    for (size_t i = 0; i < n_; ++i) {
      for (size_t k = 0; k < i; ++k) b[i] -= factor_[i][k] * b[k];
      b[i] /= factor_[i][i];
    }
    return b;
  }

  const LabeledRows& rows_;
  const double gamma_;
  const size_t n_;
  long double mean_ = 0;
  long double scale_ = 0;
  std::vector<std::vector<long double>> factor_;
  std::vector<long double> targets_;
};

// Squared length of the features and ρ are K(x, x) = 1 together, with an error of some 1e-13, and a
// variance is at least about λ/n of it.
TEST(GaussianProcessTest, WithAllRowsAsLandmarksMeanAndVarianceAreExact) {
  constexpr int64_t kRows = 120;
  // The stream has a row that is no landmark, because a build needs one for its measurements.
  const LabeledRows stream = FriedmanRows(kRows + 1, 5, 1);
  const LabeledRows rows = FirstRows(stream, kRows);
  const LabeledRows others = FriedmanRows(200, 5, 77);
  const BuiltVersion version = MustBuild(
      SpecOf(absl::StrCat("f2(landmarks=", kRows, ", policy=given, serving_type=float64)"),
             "rbf(gamma=1.5)"),
      stream.rows);
  const WithResiduals train = MapRows(version, rows.rows);
  const WithResiduals test = MapRows(version, others.rows);
  ASSERT_EQ(train.features.cols(), kRows);
  for (const double noise : {1e-3, 0.1, 10.0}) {
    SCOPED_TRACE(noise);
    RidgeTraining training({.alpha = noise}, HeadTask::kNumbers, kRows);
    ASSERT_TRUE(training
                    .Add(RidgeTraining::Part::kTrain,
                         ConstMatrixView<double>(train.features.view()), {.targets = rows.targets},
                         NeverStop)
                    .ok());
    const RidgeFit fit = training.Solve({.variance = true}, NeverStop).value();
    const VarianceFunction variance(fit.variance);
    std::vector<double> variances(200);
    variance.Compute(ConstMatrixView<double>(test.features.view()), test.residuals,
                     absl::MakeSpan(variances));
    const ExactProcess exact(rows, 1.5, noise);
    for (int64_t i = 0; i < 200; ++i) {
      double mean = fit.scores.intercepts[0];
      for (int64_t k = 0; k < kRows; ++k) mean += fit.scores.weights(k, 0) * test.features(i, k);
      const auto [exact_mean, exact_variance] = exact.At(others.rows.row(i));
      EXPECT_NEAR(mean, exact_mean, 1e-6 * std::abs(exact_mean)) << i;
      EXPECT_NEAR(variances[i], exact_variance, 1e-6 * exact_variance) << i;
    }
    EXPECT_EQ(variance.observation_variance(), fit.variance.scale * noise);
  }
}

// Features in float32, and fewer landmarks than rows. The deviation that is stated is that of the
// process for any alpha near the best one, since the scale follows it.
TEST(GaussianProcessTest, DeviationsOfFriedmansFunctionAreThoseThatOccur) {
  const LabeledRows train = FriedmanRows(1500, 5, 3);
  const LabeledRows validate = FriedmanRows(300, 5, 4);
  const LabeledRows test = FriedmanRows(1000, 5, 5);
  for (const char* kernel : {"rbf(gamma=0.1)", "matern(nu=2.5, length_scale=5)"}) {
    SCOPED_TRACE(kernel);
    const BuiltVersion version =
        MustBuild(SpecOf("f2(landmarks=300)", kernel, /*standardize=*/true), train.rows);
    const WithResiduals mapped = MapRows(version, test.rows);
    const int64_t d = mapped.features.cols();
    RidgeTraining training({}, HeadTask::kNumbers, d);
    for (const auto& [part, rows] : {std::pair(RidgeTraining::Part::kTrain, &train),
                                     std::pair(RidgeTraining::Part::kValidate, &validate)}) {
      const Matrix<float> features =
          Converted<float, double>(FeaturesFrom(version, rows->rows).view());
      ASSERT_TRUE(training
                      .Add(part, ConstMatrixView<float>(features.view()),
                           {.targets = rows->targets}, NeverStop)
                      .ok());
    }
    const RidgeFit fit = training.Solve({.variance = true}, NeverStop).value();
    const VarianceFunction variance(fit.variance);
    const Matrix<float> narrow = Converted<float, double>(mapped.features.view());
    std::vector<double> variances(1000);
    variance.Compute(ConstMatrixView<float>(narrow.view()), mapped.residuals,
                     absl::MakeSpan(variances));
    double ratio = 0;
    double square = 0;
    for (int64_t i = 0; i < 1000; ++i) {
      double miss = test.targets[i] - fit.scores.intercepts[0];
      for (int64_t k = 0; k < d; ++k) miss -= fit.scores.weights(k, 0) * mapped.features(i, k);
      square += miss * miss / 1000;
      ratio += miss * miss / (variances[i] + variance.observation_variance()) / 1000;
    }
    EXPECT_GT(std::sqrt(ratio), 0.85);
    EXPECT_LT(std::sqrt(ratio), 1.2);
    // The noise alone has 1, and the targets a deviation of about 5.
    EXPECT_LT(std::sqrt(square), 1.1);
  }
}

TEST(GaussianProcessTest, ARowsVarianceHasTheSameBitsAloneAndInABlock) {
  HeadVariance made{.noise = 0.3, .scale = 2, .inverse_factor = AlignedArray<double>(55)};
  const Matrix<double> numbers = UniformRows({.rows = 1, .cols = 55, .seed = 2});
  std::copy_n(numbers.data(), 55, made.inverse_factor.data());
  const Matrix<double> rows = UniformRows({.rows = 150, .cols = 10, .seed = 3});
  const std::vector<double> residuals(150, 0.25);
  const VarianceFunction variance(made);
  EXPECT_EQ(variance.features(), 10);
  std::vector<double> all(150);
  variance.Compute(ConstMatrixView<double>(rows.view()), residuals, absl::MakeSpan(all));
  for (int64_t i = 0; i < 150; ++i) {
    double alone = 0;
    variance.Compute(ConstMatrixView<double>(rows.view()).Rows(i, 1),
                     absl::MakeConstSpan(residuals).first(1), absl::MakeSpan(&alone, 1));
    EXPECT_EQ(alone, all[i]);
  }
  // Row k of the packed triangle begins with its diagonal.
  double square = 0;
  for (int64_t j = 0; j < 10; ++j) {
    double sum = 0;
    for (int64_t k = 0; k <= j; ++k) {
      sum += rows(7, k) * numbers(0, k * 10 - k * (k - 1) / 2 + j - k);
    }
    square += sum * sum;
  }
  EXPECT_NEAR(all[7], 2 * (0.25 + 0.3 * square), 1e-14);
}

}  // namespace
}  // namespace phimap::testing
