// Compares the engine with an interpreter that runs plans as plan.h defines them, and tests which
// plans and rows the engine refuses.
#include "core/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/naive_plan.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

std::unique_ptr<const Engine> MustLoad(const Plan& plan) { return Engine::Load(plan).value(); }

// Returns a bound on the error of a feature. u is the unit round-off of the serving type.
//
// Input stage: the numbers of x' are below 2 in magnitude (|x|, shift and scale are below 1), in p
// = 5 … 9 columns. Each is rounded once, to within 2u. The interpreter rounds it too, but may round
// a projected column the other way.
//
// Products and distances: a product of x' with a row is a sum of p ≤ 9 terms under 2. Its error is
// under (p + 2)·p·2u + 9·2u < 220u. A distance has twice this error plus that of the norms, under
// 1,000u in all.
//
// Kernels: exp(−γt) with γ ≤ 1/2 halves the error. The polynomial (t/2 + 1)² with |t| < 18
// multiplies it by 2·10/2.
//
// W: each column has a sum of magnitudes under 1. Its d terms add (d + 2)·u·max |z| < 100·100u.
//
// The total is under 20,000u. This is 1.2e-3 in float32 for features of up to 100, and 2.2e-12 in
// float64.
double Tolerance(FloatType type) {
  return 20000 * (type == FloatType::kFloat32 ? 0x1p-24 : 0x1p-53);
}

void ExpectAgrees(const PlanShape& shape, const Matrix<double>& x) {
  const Plan plan = MakePlan(shape);
  const Matrix<double> y = MustTransformWide(plan, WireRows(x));
  const Matrix<double> expected = NaiveTransform(plan, x);
  ASSERT_EQ(y.cols(), expected.cols());
  EXPECT_LE(LargestDifference(y, expected), Tolerance(shape.serving_type)) << shape.ToText();
}

TEST(EngineTest, AgreesWithTheInterpreterForEveryCombinationOfStages) {
  const Matrix<double> x = UniformRows({.rows = 50, .cols = 9, .seed = 77});
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    for (int input = 0; input < 8; ++input) {
      for (const char* kernel : {"linear()", "rbf(gamma=0.5)", "poly(degree=2, gamma=0.5, coef0=1)",
                                 "rbf(gamma=0.2) + 0.1*linear()"}) {
        for (const FeatureKind features : {FeatureKind::kProduct, FeatureKind::kL1}) {
          const bool needs_norms = std::string(kernel).find("rbf") != std::string::npos;
          if (features == FeatureKind::kL1 && needs_norms) continue;
          for (const bool centre : {false, true}) {
            for (const WKind w :
                 {WKind::kNone, WKind::kTriangular, WKind::kDense, WKind::kSparse}) {
              const PlanShape shape{.serving_type = type,
                                    .columns = 9,
                                    .shift = (input & 1) != 0,
                                    .scale = (input & 2) != 0,
                                    .projected = (input & 4) != 0 ? 5 : 0,
                                    .features = features,
                                    .feature_count = 37,
                                    .kernel = kernel,
                                    .centre = centre,
                                    .w = w,
                                    .outputs = 19};
              ExpectAgrees(shape, x);
            }
          }
        }
      }
    }
  }
}

// The kernels' values stay under 60 on these rows. The kernels take exp and powers of values under
// 4, and quotients by norms over 0.3. So they multiply the errors in the comment of Tolerance() by
// at most 30.
TEST(EngineTest, AgreesWithTheInterpreterForEveryKindOfKernel) {
  const Matrix<double> x = UniformRows({.rows = 50, .cols = 3, .seed = 79});
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    for (const char* kernel :
         {"laplacian(gamma=0.7)", "sigmoid(gamma=0.5, coef0=0.2)", "delta() + linear()", "cosine()",
          "bilinear(matrix=[2, 1, 0; 1, 2, 0; 0, 0, 3])", "bilinear(diagonal=[1, 0, 2])",
          "rbf(gamma=0.5, columns=0:2)*delta(columns=2)", "rbf(scales=[1, 2, 0.5])",
          "cosine(columns=1:3) + bilinear(diagonal=[1, 0, 2])*linear(columns=0)",
          "normalize(laplacian(scales=[1, 2], columns=1:3) + linear(columns=0:2))",
          "weight(norm_power=1)", "weight(norm_power=-1)*cosine()",
          "weight(gaussian=0.5)*exp(linear())", "weight(constant=3) + laplacian(gamma=1)",
          "normalize(poly(degree=2, coef0=1))", "rbf(gamma=0.5)*laplacian(gamma=0.5) + cosine()",
          "normalize(bilinear(diagonal=[1, 2, 3]) + laplacian(gamma=1) + weight(norm_power=2))"}) {
      for (const WKind w : {WKind::kNone, WKind::kTriangular}) {
        const PlanShape shape{.serving_type = type,
                              .columns = 3,
                              .feature_count = 37,
                              .kernel = kernel,
                              .centre = w == WKind::kTriangular,
                              .w = w};
        ExpectAgrees(shape, x);
      }
    }
  }
}

// A row with K(x, x) = 0 cannot be normalised: that row is refused, and the others are served.
TEST(EngineTest, NormalizeRefusesARowWithoutANormAndCosineGivesZero) {
  Matrix<double> x = UniformRows({.rows = 3, .cols = 3, .seed = 80});
  for (int64_t k = 0; k < 3; ++k) x(1, k) = 0;
  const auto run = [&](const char* kernel, Matrix<float>& features) {
    const auto engine = MustLoad(MakePlan({.columns = 3, .kernel = kernel}));
    features = Matrix<float>(3, engine->output_columns());
    TransformPart part{
        .rows = WireRows(x), .features = features.data(), .status = absl::OkStatus()};
    EngineScratch scratch;
    engine->Transform(absl::MakeSpan(&part, 1), scratch);
    return part.status;
  };
  Matrix<float> features;
  EXPECT_THAT(run("normalize(linear())", features),
              IsError(StatusCode::kOutOfRange, _, "rows[1]",
                      AllOf(HasSubstr("is not positive"), HasSubstr("leave such rows out"))));
  EXPECT_TRUE(std::isfinite(features(0, 0)) && std::isfinite(features(2, 0)));
  EXPECT_TRUE(run("cosine()", features).ok());
  EXPECT_EQ(features(1, 0), 0);
}

TEST(EngineTest, ANegativeNumberIsNamedAsACauseWhereTheKernelTakesNone) {
  Matrix<double> x = UniformRows({.rows = 2, .cols = 3, .seed = 81});
  x(1, 2) = -1;
  const auto engine = MustLoad(MakePlan({.columns = 3, .kernel = "chi2(gamma=1)"}));
  Matrix<float> features(2, engine->output_columns());
  TransformPart part{.rows = WireRows(x), .features = features.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_THAT(part.status,
              IsError(StatusCode::kOutOfRange, _, _, HasSubstr("a number is negative")));
}

// An angle is a sum of p ≤ 9 terms under 2. Like the products in the comment of Tolerance(), it has
// an error under 220u turns, which is 1,400u radians. Cosine and sine add 3 ULP of numbers under 1.
// W adds as much as in that comment. The total is within Tolerance(). A monomial of three factors
// under 2 has a smaller error.
TEST(EngineTest, CosinesSinesAndMonomialsAgreeWithTheInterpreterForEveryCombinationOfStages) {
  const Matrix<double> x = UniformRows({.rows = 50, .cols = 9, .seed = 79});
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    for (const FeatureKind features :
         {FeatureKind::kSinCos, FeatureKind::kPhase, FeatureKind::kMonomials}) {
      for (const WKind w : {WKind::kNone, WKind::kTriangular, WKind::kDense, WKind::kSparse}) {
        for (const bool other : {false, true}) {
          const PlanShape shape{.serving_type = type,
                                .columns = 9,
                                .shift = other,
                                .scale = other,
                                .projected = other ? 5 : 0,
                                .features = features,
                                .feature_count = 138,
                                .centre = other,
                                .w = w,
                                .outputs = 19};
          ExpectAgrees(shape, x);
        }
      }
    }
  }
}

TEST(EngineTest, AgreesWithTheInterpreterOnEveryVectorTarget) {
  const Matrix<double> x = UniformRows({.rows = 50, .cols = 9, .seed = 78});
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    EXPECT_EQ(EngineTargetName(), target.name);
    for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
      SCOPED_TRACE(target.name);
      ExpectAgrees({.serving_type = type,
                    .columns = 9,
                    .projected = 6,
                    .feature_count = 67,
                    .centre = true,
                    .w = WKind::kTriangular},
                   x);
    }
  }
}

TEST(EngineTest, ReportsShapesMemoryAndCost) {
  const std::unique_ptr<const Engine> engine =
      MustLoad(MakePlan({.columns = 5, .feature_count = 300, .w = WKind::kDense, .outputs = 10}));
  EXPECT_EQ(engine->input_columns(), 5);
  EXPECT_EQ(engine->output_columns(), 10);
  EXPECT_EQ(engine->serving_type(), FloatType::kFloat32);
  // Features are padded to whole panels of at most 64 columns.
  EXPECT_GE(engine->multiplications_per_row(), 300 * 5 + 300 * 10);
  EXPECT_LE(engine->multiplications_per_row(), (300 + 64) * 5 + 300 * 64);
  EXPECT_GE(engine->memory_bytes(), 4 * (300 * 5 + 300 * 10));
}

TEST(EngineTest, NoPartsAndEmptyPartsAreFine) {
  const std::unique_ptr<const Engine> engine = MustLoad(MakePlan({}));
  EngineScratch scratch;
  engine->Transform({}, scratch);
  TransformPart part{.rows = RowsView{.type = FloatType::kFloat32, .rows = 0, .columns = 5},
                     .status = absl::InternalError("old")};
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_TRUE(part.status.ok());
}

// The features of each row in float64.
std::vector<double> MappedBy(const Engine& engine, const RowsView& rows) {
  std::vector<double> features(static_cast<size_t>(rows.rows * engine.output_columns()));
  TransformPart part{.rows = rows, .features = features.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_TRUE(part.status.ok()) << part.status;
  return features;
}

// A remote block computes y = (z − μ)·W. The kernel values z are the numbers in its rows. This is
// tested in both float types, with and without a last number K(x, x) in each row.
TEST(EngineTest, RemoteBlockTakesItsValuesForItsRows) {
  constexpr int64_t kRows = 70;
  constexpr int64_t kValues = 6;
  Plan plan = MakePlan({.serving_type = FloatType::kFloat64,
                        .features = FeatureKind::kRemote,
                        .feature_count = kValues,
                        .centre = true,
                        .w = WKind::kTriangular});
  auto& stages = std::get<1>(plan.stages);
  const std::unique_ptr<const Engine> engine = MustLoad(plan);
  EXPECT_TRUE(engine->is_remote());
  EXPECT_EQ(engine->input_columns(), kValues);
  EXPECT_FALSE(engine->TakesColumns(kValues - 1));
  EXPECT_FALSE(engine->TakesColumns(kValues + 2));

  const Matrix<float> values = UniformFloatRows({.rows = kRows, .cols = kValues, .seed = 3});
  Matrix<double> longer = Matrix<double>::Uninit(kRows, kValues + 1);
  for (int64_t i = 0; i < kRows; ++i) {
    std::copy_n(values.row(i), kValues, longer.row(i));
    longer(i, kValues) = 1e9;
  }
  const std::vector<double> features = MappedBy(*engine, WireRows(values));
  EXPECT_EQ(MappedBy(*engine, WireRows(longer)), features);

  const auto& w = std::get<TriangularProjection<double>>(stages.projection);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kValues; ++j) {
      double expected = 0;
      double scale = 0;
      for (int64_t k = 0; k <= j; ++k) {
        const double term =
            (values(i, k) - stages.centre[k]) * w.elements.data()[w.RowOffset(k) + j - k];
        expected += term;
        scale += std::abs(term);
      }
      // Two sums of kValues products in different orders differ by half an ulp for each operation.
      EXPECT_NEAR(features[i * kValues + j], expected, 2 * kValues * 0x1p-53 * scale);
    }
  }
}

TEST(EngineTest, UnknownArithmeticAndInvalidPlansAreRefused) {
  Plan plan = MakePlan({});
  plan.arithmetic = 2;
  EXPECT_THAT(Engine::Load(plan).status(),
              IsError(StatusCode::kUnimplemented, "ARITHMETIC_UNKNOWN"));
  plan.arithmetic = kArithmetic;
  plan.input.shift = {1};
  EXPECT_EQ(Engine::Load(plan).status().code(), StatusCode::kInvalidArgument);
}

struct Overflow {
  const char* what;
  PlanShape shape;
  double value;
};

// Tests rows whose inputs or kernel values overflow float32. They are in the middle of a tile and
// in the second of three parts.
TEST(EngineTest, OverflowingRowIsNamedAndOthersAreServed) {
  const Overflow kCases[] = {
      {"linear: x' overflows", {.kernel = "linear()"}, 1e300},
      {"linear with W", {.kernel = "linear()", .w = WKind::kTriangular}, 1e300},
      {"linear: the product overflows", {.kernel = "4*linear()", .centre = true}, 3e38},
      {"poly overflows", {.kernel = "poly(degree=8)", .w = WKind::kDense}, 1e6},
      {"rbf: ‖x‖² overflows though exp(−∞) is 0", {.kernel = "rbf(gamma=0.5)"}, 1e20},
      {"rbf with W", {.kernel = "rbf(gamma=0.5)", .w = WKind::kTriangular}, 1e20},
      {"rbf of an x' that overflows", {.kernel = "rbf(gamma=0.5)", .w = WKind::kDense}, 1e300},
      {"L1 overflows", {.features = FeatureKind::kL1, .kernel = "linear()"}, 1e300},
      {"projected input overflows", {.projected = 3, .kernel = "rbf(gamma=1)"}, 1e300},
  };
  for (const Overflow& c : kCases) {
    const Plan plan = MakePlan(c.shape);
    const std::unique_ptr<const Engine> engine = MustLoad(plan);
    const int64_t outputs = engine->output_columns();
    Matrix<double> x = UniformRows({.rows = 30, .cols = 5, .seed = 3});
    const Matrix<float> expected = MustTransform<float>(*engine, WireRows(x));
    for (int64_t j = 0; j < 5; ++j) {  // rows 3 and 7 of the second part
      x(13, j) = x(13, j) < 0 ? -c.value : c.value;
      x(17, j) = c.value;
    }
    Matrix<float> y(30, outputs);
    std::vector<TransformPart> parts(3);
    for (int p = 0; p < 3; ++p) {
      parts[p].rows = WireRows(x).Slice(10 * p, 10);
      parts[p].features = y.row(10 * p);
    }
    EngineScratch scratch;
    engine->Transform(absl::MakeSpan(parts), scratch);
    EXPECT_TRUE(parts[0].status.ok()) << c.what;
    EXPECT_TRUE(parts[2].status.ok()) << c.what;
    EXPECT_THAT(parts[1].status,
                IsError(StatusCode::kOutOfRange, "VALUE_NOT_REPRESENTABLE", "rows[3]"))
        << c.what;
    EXPECT_EQ(DetailOf(parts[1].status)->metadata.at("row"), "3") << c.what;
    for (int64_t i = 0; i < 30; ++i) {
      if (i == 13 || i == 17) continue;
      EXPECT_TRUE(std::equal(y.row(i), y.row(i) + outputs, expected.row(i))) << c.what << i;
    }
  }
}

// exp hides an overflow of its argument: an L1 distance of infinity would become a similarity of 0.
TEST(EngineTest, OverflowOfAnL1DistanceShowsThroughAnExponential) {
  Plan plan = MakePlan({.features = FeatureKind::kL1, .kernel = "linear()"});
  std::get<L1Features<float>>(std::get<0>(plan.stages).features).program =
      *KernelProgram::FromOps({{.code = KernelOpCode::kPushProduct},
                               {.code = KernelOpCode::kScale, .a = -0.5},
                               {.code = KernelOpCode::kExp}});
  const std::unique_ptr<const Engine> engine = MustLoad(plan);
  Matrix<double> x = UniformRows({.rows = 2, .cols = 5, .seed = 3});
  x(1, 2) = 1e300;
  Matrix<float> y(2, 7);
  TransformPart part{.rows = WireRows(x), .features = y.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_EQ(part.status.code(), StatusCode::kOutOfRange);
  ASSERT_TRUE(DetailOf(part.status).has_value());
  EXPECT_EQ(DetailOf(part.status)->metadata.at("row"), "1");
}

TEST(EngineTest, LargeFiniteFeaturesAreNotRefused) {
  Matrix<double> x(1, 5);
  std::fill_n(x.data(), 5, 1e18);
  for (const char* kernel : {"linear()", "rbf(gamma=0.5)", "poly(degree=2)"}) {
    const std::unique_ptr<const Engine> engine = MustLoad(MakePlan({.kernel = kernel}));
    Matrix<float> y(1, 7);
    TransformPart part{.rows = WireRows(x), .features = y.data(), .status = absl::OkStatus()};
    EngineScratch scratch;
    engine->Transform(absl::MakeSpan(&part, 1), scratch);
    EXPECT_TRUE(part.status.ok()) << kernel << ": " << part.status;
  }
}

}  // namespace
}  // namespace phimap::testing
