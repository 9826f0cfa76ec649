#include "core/plan/plan.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/plans.h"

namespace phimap::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

ServingStages<float>& Stages(Plan& plan) { return std::get<0>(plan.stages); }
ProductFeatures<float>& Product(Plan& plan) {
  return std::get<ProductFeatures<float>>(Stages(plan).features);
}
RemoteFeatures Remote(RemoteFeatures::StoredKind kind, int64_t count) {
  const bool service = kind != RemoteFeatures::StoredKind::kRowNumbers;
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
      {"a number of columns that differs from the rows", plain,
       [](Plan& p) { p.input.columns = 6; }},
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
      {"P of a wrong height", projected,
       [](Plan& p) { p.input.projection = Matrix<double>(4, 3); }},
      {"P of a wrong width", projected, [](Plan& p) { p.input.projection = Matrix<double>(5, 2); }},
      {"NaN in P", projected, [](Plan& p) { p.input.projection(4, 2) = kNaN; }},
      {"fewer K(a, a) than rows", triangular,
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
      {"a program that reads norms, with L1 distances", plain,
       [](Plan& p) {
         Stages(p).features = L1Features<float>{Matrix<float>(7, 5), Product(p).program};
       }},
      {"a program with two results, with L1 distances", plain,
       [](Plan& p) {
         Stages(p).features = L1Features<float>{Matrix<float>(7, 5), ProgramOf(kPairs)};
       }},
      {"a program that reads offsets, with L1 distances", plain,
       [](Plan& p) {
         Stages(p).features = L1Features<float>{Matrix<float>(7, 5), ProgramOf(kPhases)};
       }},
      {"offsets that the program does not read", plain,
       [](Plan& p) { Product(p).offsets.assign(7, 0.5f); }},
      {"no offsets", kPhases, [](Plan& p) { Product(p).offsets.clear(); }},
      {"long offsets", kPhases, [](Plan& p) { Product(p).offsets.push_back(0.5f); }},
      {"NaN in offsets", kPhases,
       [](Plan& p) { Product(p).offsets[6] = static_cast<float>(kNaN); }},
      {"W only for one of two results", kPairs,
       [](Plan& p) { Stages(p).projection = DenseProjection<float>{Matrix<float>(4, 4)}; }},
      {"no monomials", kMonomials,
       [](Plan& p) {
         Monomials(p).coefficients.clear();
         Monomials(p).columns.clear();
       }},
      {"a monomial with a column missing", kMonomials,
       [](Plan& p) { Monomials(p).columns.pop_back(); }},
      {"degree 0", kMonomials,
       [](Plan& p) {
         Monomials(p).degree = 0;
         Monomials(p).columns.clear();
       }},
      {"a column beyond the last", kMonomials, [](Plan& p) { Monomials(p).columns[2] = 5; }},
      {"decreasing columns", kMonomials,
       [](Plan& p) {
         Monomials(p).columns[1] = 4;
         Monomials(p).columns[2] = 3;
       }},
      {"a column below that of the constant", kMonomials,
       [](Plan& p) { Monomials(p).columns[0] = -2; }},
      {"NaN in a coefficient", kMonomials,
       [](Plan& p) { Monomials(p).coefficients[6] = static_cast<float>(kNaN); }},
      {"short centre", plain,
       [](Plan& p) {
         Stages(p).centre = {1, 2};
       }},
      {"triangle of a wrong order", triangular,
       [](Plan& p) { std::get<TriangularProjection<float>>(Stages(p).projection).order = 6; }},
      {"triangle with too few elements", triangular,
       [](Plan& p) {
         std::get<TriangularProjection<float>>(Stages(p).projection).elements =
             AlignedArray<float>(27);
       }},
      {"W of a wrong height", dense,
       [](Plan& p) { Stages(p).projection = DenseProjection<float>{Matrix<float>(6, 4)}; }},
      {"W without columns", dense,
       [](Plan& p) { Stages(p).projection = DenseProjection<float>{Matrix<float>(7, 0)}; }},
      {"sparse offsets too few", sparse, [](Plan& p) { Sparse(p).row_offsets.pop_back(); }},
      {"sparse offsets start late", sparse, [](Plan& p) { Sparse(p).row_offsets[0] = 1; }},
      {"sparse offsets decrease", sparse, [](Plan& p) { Sparse(p).row_offsets[2] = 0; }},
      {"sparse offset beyond the entries", sparse,
       [](Plan& p) { Sparse(p).row_offsets[3] = 1 << 20; }},
      {"sparse offset far below 0", sparse, [](Plan& p) { Sparse(p).row_offsets[3] = -(1 << 20); }},
      {"sparse index beyond the last column", sparse,
       [](Plan& p) { Sparse(p).column_indices.back() = 4; }},
      {"sparse index negative", sparse, [](Plan& p) { Sparse(p).column_indices[0] = -1; }},
      {"sparse index twice", sparse,
       [](Plan& p) { Sparse(p).column_indices[1] = Sparse(p).column_indices[0]; }},
      {"sparse index missing", sparse, [](Plan& p) { Sparse(p).column_indices.pop_back(); }},
      {"NaN in sparse W", sparse, [](Plan& p) { Sparse(p).values[0] = static_cast<float>(kNaN); }},
      {"remote without a name", plain,
       [](Plan& p) { Stages(p).features = RemoteFeatures{.endpoint = "e", .examples = {"x"}}; }},
      {"remote without examples", plain,
       [](Plan& p) { Stages(p).features = RemoteFeatures{.kernel = "k", .endpoint = "e"}; }},
      {"remote example with another number of columns", plain,
       [](Plan& p) {
         Stages(p).features = RemoteFeatures{
             .kernel = "k",
             .endpoint = "e",
             .examples = {std::string(static_cast<size_t>(p.input.columns * 8 + 8), 'x')}};
       }},
      {"remote rows with a shift", plain,
       [](Plan& p) {
         p.input.shift.assign(static_cast<size_t>(p.input.columns), 1.0);
         Stages(p).features = Remote(RemoteFeatures::StoredKind::kDense, 2);
         for (std::string& row : std::get<RemoteFeatures>(Stages(p).features).examples) {
           row.assign(static_cast<size_t>(p.input.columns) * 8, 'x');
         }
       }},
      {"remote strings in a plan with columns", plain,
       [](Plan& p) { Stages(p).features = Remote(RemoteFeatures::StoredKind::kText, 2); }},
      {"remote sparse rows with invalid bytes", plain,
       [](Plan& p) { Stages(p).features = Remote(RemoteFeatures::StoredKind::kSparse, 2); }},
      {"rows without columns", plain, [](Plan& p) { p.input.columns = 0; }},
      {"row numbers with an endpoint", plain,
       [](Plan& p) {
         RemoteFeatures block = Remote(RemoteFeatures::StoredKind::kRowNumbers, p.input.columns);
         block.endpoint = "e";
         Stages(p).features = block;
       }},
      {"one row number less than columns", plain,
       [](Plan& p) {
         Stages(p).features = Remote(RemoteFeatures::StoredKind::kRowNumbers, p.input.columns - 1);
       }},
      {"an invalid row number", plain,
       [](Plan& p) {
         RemoteFeatures block = Remote(RemoteFeatures::StoredKind::kRowNumbers, p.input.columns);
         block.examples.back() = "-1";
         Stages(p).features = block;
       }},
  };
  for (const Breakage& c : kCases) {
    Plan plan = MakePlan(c.shape);
    ASSERT_TRUE(plan.Validate().ok()) << c.what;
    c.apply(plan);
    EXPECT_EQ(plan.Validate().code(), StatusCode::kInvalidArgument) << c.what;
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
}  // namespace phimap::testing
