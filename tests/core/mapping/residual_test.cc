#include "core/plan/residual.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/certificate/held_out_features.h"
#include "core/certificate/measurement.h"
#include "core/linalg/blas.h"
#include "core/plan/artifact.h"
#include "core/plan/plan.h"
#include "core/plan/rows.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

struct Case {
  const char* what;
  const char* mapping;
  const char* kernel;
  int64_t columns;
  bool standardize;
  // The distance between two clusters, in each column.
  double apart = 0;
  // In each column, rows are spread · N(0, 1) + centre.
  double centre = 0;
  double spread = 1;
  // At least one pair must have an error of this share of its bound. If rows lie outside of the
  // landmarks' span, errors reach almost all of the bound. If only rounding is left, errors stay
  // far below the bound, which assumes the worst case of all roundings.
  double closest = 0.9;
};

const Case kCases[] = {
    {"rbf", "f2(landmarks=300)", "rbf(gamma=scale)", 16, true},
    {"wide rbf", "f2(landmarks=300)", "rbf(gamma=0.002)", 4, false},
    {"rbf in float64", "f2(landmarks=300, serving_type=float64)", "rbf(gamma=scale)", 16, true},
    {"polynomial", "f2(landmarks=200)", "poly(degree=3, coef0=1, gamma=0.1)", 6, false, 0, 0, 1,
     0.001},
    {"linear", "f2(landmarks=40)", "3*linear()", 12, true, 0, 0, 1, 0.008},
    {"linear that lacks directions", "f2(landmarks=5)", "linear()", 12, true},
    {"sum", "f2(landmarks=100)", "rbf(gamma=0.1) + 0.1*poly(degree=2)", 8, false},
    {"far clusters", "f2(landmarks=8)", "rbf(gamma=1)", 4, false, 24},
    {"product of far rbfs", "f2(landmarks=8)", "rbf(gamma=0.5)*rbf(gamma=0.3)", 4, false, 24},
    {"laplacian", "f2(landmarks=200)", "laplacian(gamma=0.2)", 6, false},
    {"bilinear", "f2(landmarks=9)", "bilinear(matrix=[2, 1; 1, 3])", 2, false, 0, 0, 1, 0.02},
    {"weighted", "f2(landmarks=100)", "weight(norm_power=1)*rbf(gamma=0.3)", 4, false},
    {"normalized", "f2(landmarks=100)", "normalize(poly(degree=2, coef0=1))", 4, false, 0, 0, 1,
     0.0005},
    {"high power", "f2(landmarks=1, serving_type=float32)", "poly(degree=64, coef0=0)", 1, false, 0,
     1.25, 0.08, 0.005},
    {"power of near rows", "f2(landmarks=20, serving_type=float32)",
     "poly(degree=40, gamma=0.1, coef0=1)", 2, false, 0, 2.5, 1e-4, 0.015},
    {"exp of products", "f2(landmarks=20, serving_type=float32)", "exp(2*linear())", 2, false, 0,
     2.5, 1e-4, 0.015},
    {"exp of an rbf", "f2(landmarks=20, serving_type=float32)", "exp(40*rbf(gamma=0.1))", 2, false,
     0, 2.5, 1e-4, 0.002},
    {"rbf times a power", "f2(landmarks=20, serving_type=float32)",
     "rbf(gamma=0.0001)*poly(degree=60, gamma=1)", 1, false, 0, 1, 0.01, 0.007},
    {"high weight", "f2(landmarks=20, serving_type=float32)", "weight(norm_power=16)*linear()", 1,
     false, 0, 1, 0.15, 0.015},
    {"many columns of one sign", "f2(landmarks=20, serving_type=float32)",
     "poly(degree=8, gamma=0.002)", 512, false, 0, 1, 0.2},
    {"rpcholesky", "f2(landmarks=300, policy=rpcholesky)", "rbf(gamma=scale)", 16, true},
};

Matrix<double> RowsOf(const Case& c, const RandomRowsSpec& spec) {
  Matrix<double> rows = NormalRows(spec);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < rows.cols(); ++j) {
      rows(i, j) = c.centre + c.spread * rows(i, j) + (i % 2 == 0 ? 0.5 : -0.5) * c.apart;
    }
  }
  return rows;
}

// Returns ρ(x) + a(x) of each row x.
std::vector<double> BoundsOf(const Residual& residual, const BuiltVersion& built,
                             const Matrix<double>& rows, const Matrix<double>& features) {
  std::vector<double> bounds(static_cast<size_t>(rows.rows()));
  std::vector<double> allowances(bounds.size());
  if (built.serving_type == FloatType::kFloat32) {
    const Matrix<float> narrow = Converted<float, double>(features.view());
    residual.Compute(WireRows(rows), narrow.data(), bounds.data(), allowances.data());
  } else {
    residual.Compute(WireRows(rows), features.data(), bounds.data(), allowances.data());
  }
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] += allowances[i];
  return bounds;
}

struct Served {
  explicit Served(const Case& c)
      : built(MustBuild(SpecOf(c.mapping, c.kernel, c.standardize),
                        RowsOf(c, {.rows = 3000, .cols = c.columns, .seed = 1}))),
        rows(RowsOf(c, {.rows = 400, .cols = c.columns, .seed = 2})) {
    // A few rows differ from all rows that the build saw.
    for (int64_t i = 0; i < 10 && c.spread == 1; ++i) {
      for (int64_t j = 0; j < c.columns; ++j) rows(i, j) *= 5;
    }
    Artifact decoded = DecodeArtifact(built.bytes).value();
    artifact = std::move(decoded);
    residual = Residual::Of(artifact.plan, artifact.provenance);
    features = MustTransformWide(artifact.plan, WireRows(rows));
  }

  // Returns ρ + a of each row, which bounds errors.
  std::vector<double> Bounds() const { return BoundsOf(*residual, built, rows, features); }

  // Returns K on the rows after the input stage, computed in long double.
  Matrix<double> Kernel() const {
    Matrix<double> x(rows.rows(), rows.cols());
    const InputStage& input = artifact.plan.input;
    for (int64_t i = 0; i < x.rows(); ++i) {
      for (int64_t j = 0; j < x.cols(); ++j) {
        x(i, j) = rows(i, j);
        if (!input.shift.empty()) x(i, j) -= input.shift[j];
        if (!input.scale.empty()) x(i, j) *= input.scale[j];
      }
    }
    return NaiveKernelMatrix(MustParseKernel(artifact.provenance.kernel_text.c_str()), x, x);
  }

  BuiltVersion built;
  Matrix<double> rows;
  Artifact artifact;
  std::optional<Residual> residual;
  Matrix<double> features;
};

TEST(ResidualTest, BoundsTheErrorOfEveryPairAndTheBareDifferenceDoesNot) {
  int bare_failures = 0;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const Served served(c);
    ASSERT_TRUE(served.residual.has_value());
    const std::vector<double> rho = served.Bounds();
    const Matrix<double> k = served.Kernel();
    double closest = 0;
    for (int64_t i = 0; i < k.rows(); ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        double norm_i = 0;
        double norm_j = 0;
        for (int64_t f = 0; f < served.features.cols(); ++f) {
          product += served.features(i, f) * served.features(j, f);
          norm_i += served.features(i, f) * served.features(i, f);
          norm_j += served.features(j, f) * served.features(j, f);
        }
        const double error = std::abs(k(i, j) - product);
        const double bound = std::sqrt(rho[i] * rho[j]);
        ASSERT_LE(error, bound) << i << " " << j;
        closest = std::max(closest, error / bound);
        const double bare = std::max(0.0, k(i, i) - norm_i) * std::max(0.0, k(j, j) - norm_j);
        if (error > std::sqrt(bare)) ++bare_failures;
      }
    }
    EXPECT_GE(closest, c.closest);
    std::printf("%-30s closest pair at %.5f of its bound\n", c.what, closest);
  }
  // Without the allowance for rounding, the bound would fail for some pairs.
  EXPECT_GT(bare_failures, 0);
}

// Returns the landmarks of an artifact, or nullopt for a folded kernel, whose artifact has none.
// FeatureErrors computes F2 of each row in long double from the landmarks alone. L is the
// triangular factor of the kernel matrix of the landmarks, and k(x) is the vector of kernel values
// of a row x. The features y solve L·y = k(x).
template <typename T>
std::optional<Matrix<double>> LandmarksOf(const ServingStages<T>& stages) {
  if (!std::holds_alternative<TriangularProjection<T>>(stages.projection)) return std::nullopt;
  return Converted<double, T>(std::get<ProductFeatures<T>>(stages.features).rows.view());
}

std::vector<double> FeatureErrors(const Served& served, const Matrix<double>& x) {
  const std::optional<Matrix<double>> landmarks = std::visit(
      [](const auto& stages) { return LandmarksOf(stages); }, served.artifact.plan.stages);
  if (!landmarks.has_value()) return {};
  const KernelExpression kernel = MustParseKernel(served.artifact.provenance.kernel_text.c_str());
  const Matrix<double> gram = NaiveKernelMatrix(kernel, *landmarks, *landmarks);
  const Matrix<double> k = NaiveKernelMatrix(kernel, x, *landmarks);
  const int64_t r = gram.rows();
  std::vector<long double> l(static_cast<size_t>(r * r));
  for (int64_t i = 0; i < r; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      long double sum = gram(i, j);
      for (int64_t m = 0; m < j; ++m) sum -= l[i * r + m] * l[j * r + m];
      l[i * r + j] = i == j ? std::sqrt(sum) : sum / l[j * r + j];
    }
  }
  std::vector<double> errors;
  std::vector<long double> y(static_cast<size_t>(r));
  for (int64_t i = 0; i < x.rows(); ++i) {
    long double square = 0;
    for (int64_t j = 0; j < r; ++j) {
      long double sum = k(i, j);
      for (int64_t m = 0; m < j; ++m) sum -= l[j * r + m] * y[m];
      y[j] = sum / l[j * r + j];
      const long double difference = y[j] - served.features(i, j);
      square += difference * difference;
    }
    errors.push_back(static_cast<double>(std::sqrt(square)));
  }
  return errors;
}

// The kernels of the cases are smooth, so K computed in double is more accurate than the version's
// values in float32. Versions in float64 are skipped: the reference values are rounded to double,
// so they would be no more accurate than the version.
TEST(ResidualTest, RoundingIsOverWhatFeaturesErrByAndIsNotFarFromIt) {
  double closest_of_all = 0;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const Served served(c);
    Matrix<double> x = AfterInputStage(served.artifact.plan.input, served.rows.view());
    if (served.built.serving_type == FloatType::kFloat64) continue;
    for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(x.data()[i]);
    const std::vector<double> errors = FeatureErrors(served, x);
    if (errors.empty()) continue;
    const int64_t n = served.rows.rows();
    std::vector<double> self(static_cast<size_t>(n));
    std::vector<double> rounding(static_cast<size_t>(n));
    served.residual->Lengths(WireRows(served.rows), self.data(), rounding.data());
    double closest = 0;
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_LE(errors[i], rounding[i] * std::sqrt(self[i])) << i;
      closest = std::max(closest, errors[i] / (rounding[i] * std::sqrt(self[i])));
    }
    std::printf("%-30s closest row at %.5f of what rounding is said to be\n", c.what, closest);
    EXPECT_GE(closest, 0.001);
    closest_of_all = std::max(closest_of_all, closest);
  }
  // A third of the bound would be too small.
  EXPECT_GT(closest_of_all, 1.0 / 3);
}

// K(x, x) of the served rows is a polynomial or an exponential of numbers with an error of 6e-8
// each. Powers are at most 64. So K(x, x) has a relative error of less than 1e-5.
TEST(ResidualTest, LengthsAreTheKernelsOwn) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const Served served(c);
    const Matrix<double> k = served.Kernel();
    const int64_t n = served.rows.rows();
    std::vector<double> self(static_cast<size_t>(n));
    std::vector<double> rounding(static_cast<size_t>(n));
    served.residual->Lengths(WireRows(served.rows), self.data(), rounding.data());
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(self[i], k(i, i), 1e-5 * k(i, i)) << i;
  }
}

// If a row is so short that ‖x‖² underflows in float32, its cosine is lost, and only an infinite
// bound is correct.
TEST(ResidualTest, BoundsRowsThatUnderflowTakes) {
  const Matrix<double> rows = NormalRows({.rows = 2000, .cols = 4, .seed = 8});
  for (const char* kernel : {"cosine()", "normalize(linear())", "linear()", "poly(degree=2)"}) {
    for (const char* type : {"float32", "float64"}) {
      SCOPED_TRACE(std::string(kernel) + " " + type);
      const BuiltVersion built = MustBuild(
          SpecOf(std::string("f2(landmarks=50, serving_type=") + type + ")", kernel), rows);
      const Artifact artifact = DecodeArtifact(built.bytes).value();
      const std::optional<Residual> residual = Residual::Of(artifact.plan, artifact.provenance);
      ASSERT_TRUE(residual.has_value());
      for (const double scale : {1e-10, 1e-20, 1e-22, 1e-23, 1e-44, 1e-80, 1e-161}) {
        Matrix<double> x(20, 4);
        for (int64_t i = 0; i < 20; ++i) {
          for (int64_t j = 0; j < 4; ++j) x(i, j) = rows(i, j) * (i % 2 == 0 ? 1 : scale);
        }
        // The rows as served are rounded to float32.
        Matrix<double> seen = x.Clone();
        if (built.serving_type == FloatType::kFloat32) {
          for (int64_t i = 0; i < x.size(); ++i) seen.data()[i] = static_cast<float>(x.data()[i]);
        }
        const absl::StatusOr<Matrix<double>> f =
            FeaturesOf(artifact.plan, x.view(), {[] { return 1; }, NeverStop});
        if (!f.ok()) continue;  // refused with an error
        const std::vector<double> rho = BoundsOf(*residual, built, x, *f);
        const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kernel), seen, seen);
        for (int64_t i = 0; i < 20; ++i) {
          for (int64_t j = 0; j < i; ++j) {
            double product = 0;
            for (int64_t l = 0; l < f->cols(); ++l) product += (*f)(i, l) * (*f)(j, l);
            const double bound = std::sqrt(rho[i]) * std::sqrt(rho[j]);
            ASSERT_LE(std::abs(k(i, j) - product), bound) << scale << " " << i << " " << j;
          }
        }
      }
    }
  }
}

TEST(ResidualTest, IsNearlyZeroOnLandmarksAndAllOfKFarAway) {
  const Matrix<double> rows = NormalRows({.rows = 60, .cols = 3, .seed = 4});
  // Every row is a landmark, because landmarks take precedence over held-out rows.
  const BuiltVersion built =
      MustBuild(SpecOf("f2(landmarks=60, serving_type=float64)", "rbf(gamma=1)"), rows);
  const Artifact artifact = DecodeArtifact(built.bytes).value();
  const std::optional<Residual> residual = Residual::Of(artifact.plan, artifact.provenance);
  ASSERT_TRUE(residual.has_value());
  Matrix<double> queries = rows.Clone();
  for (int64_t j = 0; j < 3; ++j) queries(59, j) = 100;
  const Matrix<double> f = MustTransformWide(artifact.plan, WireRows(queries));
  std::vector<double> rho(60);
  residual->Compute(WireRows(queries), f.data(), rho.data(), /*allowances=*/nullptr);
  for (int i = 0; i < 59; ++i) EXPECT_LT(rho[i], 1e-6) << i;
  EXPECT_NEAR(rho[59], 1, 1e-6);
}

TEST(ResidualTest, PairsOfHeldOutRowsThatBreakItsBoundAreToldOf) {
  const Matrix<double> rows = NormalRows({.rows = 900, .cols = 3, .seed = 6});
  const KernelExpression kernel = MustParseKernel("rbf(gamma=0.5)");
  const BuiltVersion built = MustBuild(SpecOf("f2(landmarks=300)", "rbf(gamma=0.5)"), rows);
  const Artifact good = DecodeArtifact(built.bytes).value();
  const std::optional<Residual> residual = Residual::Of(good.plan, good.provenance);
  ASSERT_TRUE(residual.has_value());
  const Matrix<double> held_out = NormalRows({.rows = 200, .cols = 3, .seed = 7});
  const auto warnings = [&](const Plan& plan) {
    MeasurementTask task{.served = &plan, .reference = &plan, .rows = held_out.view()};
    task.kernel = KernelProgram::Compile(kernel);
    task.residual = &*residual;
    Certificate certificate;
    const auto one = [] { return 1; };
    const auto never = [](double) { return absl::OkStatus(); };
    EXPECT_TRUE(MeasureHeldOut(task, {one, never}, certificate).ok());
    return certificate.warnings;
  };
  EXPECT_THAT(warnings(good.plan), IsEmpty());
  // Features that are twice as long as they should be, which rounding cannot explain.
  Artifact wrong = DecodeArtifact(built.bytes).value();
  auto& stages = std::get<ServingStages<float>>(wrong.plan.stages);
  auto& elements = std::get<TriangularProjection<float>>(stages.projection).elements;
  for (int64_t k = 0; k < elements.size(); ++k) elements.data()[k] *= 2;
  ASSERT_THAT(warnings(wrong.plan), SizeIs(1));
  EXPECT_THAT(warnings(wrong.plan)[0], HasSubstr("do not bound the kernel error of "));
}

TEST(ResidualTest, OnlyF2HasOne) {
  const Matrix<double> rows = NormalRows({.rows = 200, .cols = 3, .seed = 5});
  for (const auto& [mapping, kernel] : std::vector<std::pair<const char*, const char*>>{
           {"f1(landmarks=9)", "rbf(gamma=1)"},
           {"f3(landmarks=9, dimensions=4)", "rbf(gamma=1)"},
           {"random_projection(dimensions=4)", "linear()"}}) {
    const BuiltVersion built = MustBuild(SpecOf(mapping, kernel), rows);
    const Artifact artifact = DecodeArtifact(built.bytes).value();
    EXPECT_FALSE(Residual::Of(artifact.plan, artifact.provenance).has_value()) << mapping;
    // A plan whose provenance falsely claims that it is F2 has no residual either.
    Provenance spoof = artifact.provenance;
    spoof.spec_text = "f2(landmarks=9)";
    spoof.kernel_text = "poly(degree=2)";
    EXPECT_FALSE(Residual::Of(artifact.plan, spoof).has_value()) << mapping;
  }
}

}  // namespace
}  // namespace phimap::testing
