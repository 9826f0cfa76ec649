#include "core/plan/plan.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/plans.h"

namespace phimap {
namespace {

using testing::FeatureKind;
using testing::MakePlan;
using testing::PlanShape;
using testing::WKind;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

ServingStages<float>& Stages(Plan& plan) { return std::get<0>(plan.stages); }
ProductFeatures<float>& Product(Plan& plan) {
  return std::get<ProductFeatures<float>>(Stages(plan).features);
}
RemoteFeatures Remote(RemoteFeatures::ExampleKind kind, int64_t count) {
  const bool service = kind != RemoteFeatures::ExampleKind::kRowNumbers;
  return {.kernel = service ? "k" : "",
          .endpoint = service ? "e" : "",
          .kind = kind,
          .examples = std::vector<std::string>(static_cast<size_t>(count), "7")};
}
SparseProjection<float>& Sparse(Plan& plan) {
  return std::get<SparseProjection<float>>(Stages(plan).projection);
}

const PlanShape kPairs{.features = FeatureKind::kSinCos, .feature_count = 8};
const PlanShape kPhases{.features = FeatureKind::kPhase};
const PlanShape kMonomials{.features = FeatureKind::kMonomials};

ExpansionFeatures<float>& Monomials(Plan& p) {
  return std::get<ExpansionFeatures<float>>(Stages(p).features);
}

KernelProgram ProgramOf(const PlanShape& shape) {
  Plan plan = MakePlan(shape);
  return Product(plan).program;
}

TEST(PlanTest, ShapesOfEachProjection) {
  for (const auto& [w, outputs] : {std::pair{WKind::kNone, 7},
                                   {WKind::kTriangular, 7},
                                   {WKind::kDense, 4},
                                   {WKind::kSparse, 4}}) {
    const Plan plan = MakePlan({.w = w});
    EXPECT_EQ(plan.input_columns(), 5);
    EXPECT_EQ(plan.output_columns(), outputs);
    EXPECT_EQ(plan.serving_type(), FloatType::kFloat32);
  }
  EXPECT_EQ(MakePlan({.serving_type = FloatType::kFloat64}).serving_type(), FloatType::kFloat64);
  EXPECT_EQ(MakePlan(kPairs).output_columns(), 8);
}

struct Breakage {
  const char* what;
  PlanShape shape;
  std::function<void(Plan&)> apply;
};

TEST(PlanTest, ValidateRefusesWhateverDoesNotFit) {
  const PlanShape plain{};
  const PlanShape triangular{.w = WKind::kTriangular};
  const PlanShape dense{.w = WKind::kDense};
  const PlanShape sparse{.w = WKind::kSparse};
  const PlanShape projected{.projected = 3};
  const Breakage kCases[] = {
      {"no columns", plain, [](Plan& p) { p.input.columns = 0; }},
      {"too many columns", plain, [](Plan& p) { p.input.columns = kMaxPlanDimension + 1; }},
      {"other columns than rows", plain, [](Plan& p) { p.input.columns = 6; }},
      {"short shift", plain,
       [](Plan& p) {
         p.input.shift = {1, 2};
       }},
      {"NaN in shift", plain,
       [](Plan& p) {
         p.input.shift = {1, 2, kNaN, 4, 5};
       }},
      {"long scale", plain, [](Plan& p) { p.input.scale.assign(6, 1.0); }},
      {"infinite scale", plain,
       [](Plan& p) {
         p.input.scale = {1, 1, 1, 1, 1 / 0.0};
       }},
      {"P of other height", projected, [](Plan& p) { p.input.projection = Matrix<double>(4, 3); }},
      {"P of other width", projected, [](Plan& p) { p.input.projection = Matrix<double>(5, 2); }},
      {"NaN in P", projected, [](Plan& p) { p.input.projection(4, 2) = kNaN; }},
      {"other K(a, a) than rows", triangular,
       [](Plan& p) {
         std::get<TriangularProjection<float>>(Stages(p).projection).self_values = {1, 1};
       }},
      {"K(a, a) of 0", triangular,
       [](Plan& p) {
         std::get<TriangularProjection<float>>(Stages(p).projection).self_values = {1, 1, 1, 0,
                                                                                    1, 1, 1};
       }},
      {"K(a, a) of infinity", triangular,
       [](Plan& p) {
         std::get<TriangularProjection<float>>(Stages(p).projection).self_values = {
             1, 1, 1, 1 / 0.0, 1, 1, 1};
       }},
      {"no features", plain, [](Plan& p) { Product(p).rows = Matrix<float>(0, 5); }},
      {"NaN in A'", plain, [](Plan& p) { Product(p).rows(6, 4) = static_cast<float>(kNaN); }},
      {"norms under L1", plain,
       [](Plan& p) {
         Stages(p).features = L1Features<float>{Matrix<float>(7, 5), Product(p).program};
       }},
      {"two results under L1", plain,
       [](Plan& p) {
         Stages(p).features = L1Features<float>{Matrix<float>(7, 5), ProgramOf(kPairs)};
       }},
      {"offsets under L1", plain,
       [](Plan& p) {
         Stages(p).features = L1Features<float>{Matrix<float>(7, 5), ProgramOf(kPhases)};
       }},
      {"offsets that nobody reads", plain, [](Plan& p) { Product(p).offsets.assign(7, 0.5f); }},
      {"no offsets", kPhases, [](Plan& p) { Product(p).offsets.clear(); }},
      {"long offsets", kPhases, [](Plan& p) { Product(p).offsets.push_back(0.5f); }},
      {"NaN in offsets", kPhases,
       [](Plan& p) { Product(p).offsets[6] = static_cast<float>(kNaN); }},
      {"W for one result of two", kPairs,
       [](Plan& p) { Stages(p).projection = DenseProjection<float>{Matrix<float>(4, 4)}; }},
      {"no monomials", kMonomials,
       [](Plan& p) {
         Monomials(p).coefficients.clear();
         Monomials(p).columns.clear();
       }},
      {"columns of half a monomial", kMonomials, [](Plan& p) { Monomials(p).columns.pop_back(); }},
      {"degree 0", kMonomials,
       [](Plan& p) {
         Monomials(p).degree = 0;
         Monomials(p).columns.clear();
       }},
      {"a column that is not there", kMonomials, [](Plan& p) { Monomials(p).columns[2] = 5; }},
      {"columns that fall", kMonomials,
       [](Plan& p) {
         Monomials(p).columns[1] = 4;
         Monomials(p).columns[2] = 3;
       }},
      {"a column before the constant's", kMonomials, [](Plan& p) { Monomials(p).columns[0] = -2; }},
      {"NaN in a coefficient", kMonomials,
       [](Plan& p) { Monomials(p).coefficients[6] = static_cast<float>(kNaN); }},
      {"short centre", plain,
       [](Plan& p) {
         Stages(p).centre = {1, 2};
       }},
      {"triangle of other order", triangular,
       [](Plan& p) { std::get<TriangularProjection<float>>(Stages(p).projection).order = 6; }},
      {"triangle with few elements", triangular,
       [](Plan& p) {
         std::get<TriangularProjection<float>>(Stages(p).projection).elements =
             AlignedArray<float>(27);
       }},
      {"W of other height", dense,
       [](Plan& p) { Stages(p).projection = DenseProjection<float>{Matrix<float>(6, 4)}; }},
      {"W without columns", dense,
       [](Plan& p) { Stages(p).projection = DenseProjection<float>{Matrix<float>(7, 0)}; }},
      {"sparse offsets too few", sparse, [](Plan& p) { Sparse(p).row_offsets.pop_back(); }},
      {"sparse offsets start late", sparse, [](Plan& p) { Sparse(p).row_offsets[0] = 1; }},
      {"sparse offsets fall", sparse, [](Plan& p) { Sparse(p).row_offsets[2] = 0; }},
      {"sparse offsets beyond", sparse, [](Plan& p) { Sparse(p).row_offsets[3] = 1 << 20; }},
      {"sparse offsets far below", sparse, [](Plan& p) { Sparse(p).row_offsets[3] = -(1 << 20); }},
      {"sparse index beyond", sparse, [](Plan& p) { Sparse(p).column_indices.back() = 4; }},
      {"sparse index negative", sparse, [](Plan& p) { Sparse(p).column_indices[0] = -1; }},
      {"sparse index twice", sparse,
       [](Plan& p) { Sparse(p).column_indices[1] = Sparse(p).column_indices[0]; }},
      {"sparse index missing", sparse, [](Plan& p) { Sparse(p).column_indices.pop_back(); }},
      {"NaN in sparse W", sparse, [](Plan& p) { Sparse(p).values[0] = static_cast<float>(kNaN); }},
      {"remote without a name", plain,
       [](Plan& p) { Stages(p).features = RemoteFeatures{.endpoint = "e", .examples = {"x"}}; }},
      {"remote without examples", plain,
       [](Plan& p) { Stages(p).features = RemoteFeatures{.kernel = "k", .endpoint = "e"}; }},
      {"remote example of other columns", plain,
       [](Plan& p) {
         Stages(p).features = RemoteFeatures{
             .kernel = "k",
             .endpoint = "e",
             .examples = {std::string(static_cast<size_t>(p.input.columns * 8 + 8), 'x')}};
       }},
      {"remote rows that are shifted", plain,
       [](Plan& p) {
         p.input.shift.assign(static_cast<size_t>(p.input.columns), 1.0);
         Stages(p).features = Remote(RemoteFeatures::ExampleKind::kDense, 2);
         for (std::string& row : std::get<RemoteFeatures>(Stages(p).features).examples) {
           row.assign(static_cast<size_t>(p.input.columns) * 8, 'x');
         }
       }},
      {"remote strings that have columns", plain,
       [](Plan& p) { Stages(p).features = Remote(RemoteFeatures::ExampleKind::kText, 2); }},
      {"remote sparse rows that are none", plain,
       [](Plan& p) { Stages(p).features = Remote(RemoteFeatures::ExampleKind::kSparse, 2); }},
      {"no columns of rows", plain, [](Plan& p) { p.input.columns = 0; }},
      {"row numbers with an endpoint", plain,
       [](Plan& p) {
         RemoteFeatures block = Remote(RemoteFeatures::ExampleKind::kRowNumbers, p.input.columns);
         block.endpoint = "e";
         Stages(p).features = block;
       }},
      {"a row number for each column but one", plain,
       [](Plan& p) {
         Stages(p).features = Remote(RemoteFeatures::ExampleKind::kRowNumbers, p.input.columns - 1);
       }},
      {"a row number that is none", plain,
       [](Plan& p) {
         RemoteFeatures block = Remote(RemoteFeatures::ExampleKind::kRowNumbers, p.input.columns);
         block.examples.back() = "-1";
         Stages(p).features = block;
       }},
  };
  for (const Breakage& c : kCases) {
    Plan plan = MakePlan(c.shape);
    ASSERT_TRUE(plan.Validate().ok()) << c.what;
    c.apply(plan);
    EXPECT_EQ(plan.Validate().code(), absl::StatusCode::kInvalidArgument) << c.what;
  }
}

TEST(PlanTest, TriangleIsStoredRowAfterRow) {
  TriangularProjection<float> triangle{.order = 4, .elements = AlignedArray<float>(10)};
  EXPECT_EQ(triangle.ElementCount(4), 10);
  EXPECT_EQ(triangle.RowOffset(0), 0);
  EXPECT_EQ(triangle.RowOffset(1), 4);
  EXPECT_EQ(triangle.RowOffset(2), 7);
  EXPECT_EQ(triangle.RowOffset(3), 9);
}

}  // namespace
}  // namespace phimap
