// Tests that the bits of a row's features depend only on the row and the plan. They must not depend
// on the batch, the split into parts, the float type of the input, a sparse or dense W, the scratch
// memory or the vector unit.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/kernel/kernel_evaluator.h"
#include "core/linalg/panel_product.h"
#include "gtest/gtest.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

template <typename T>
class EngineBitsTest : public ::testing::Test {
 protected:
  static constexpr FloatType kType = sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
  static std::vector<PlanShape> Shapes() { return ShapesOfEveryKind(kType); }
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EngineBitsTest, Types);

TYPED_TEST(EngineBitsTest, RowAloneEqualsTheRowInABatchOfAnySizeAroundTheTile) {
  using T = TypeParam;
  for (const PlanShape& shape : this->Shapes()) {
    const auto engine = *Engine::Load(MakePlan(shape));
    const Matrix<float> x = UniformFloatRows({.rows = 100, .cols = shape.columns, .seed = 9});
    const int64_t outputs = engine->output_columns();
    Matrix<T> alone = Matrix<T>::Uninit(100, outputs);
    for (int64_t i = 0; i < 100; ++i) {
      const Matrix<T> y = MustTransform<T>(*engine, WireRows(x).Slice(i, 1));
      std::copy_n(y.data(), outputs, alone.row(i));
    }
    for (const int64_t rows : {2, 5, 6, 7, 11, 12, 13, 47, 48, 49, 95, 96, 97, 100}) {
      for (const int64_t first : {int64_t{0}, 100 - rows}) {
        const Matrix<T> y = MustTransform<T>(*engine, WireRows(x).Slice(first, rows));
        EXPECT_TRUE(SameBits(y.data(), alone.row(first), y.size()))
            << shape.ToText() << " rows " << first << " + " << rows;
      }
    }
  }
}

// Makes one call with parts of different float types, whose rows share tiles. Compares the features
// with those of a separate call for each row.
TYPED_TEST(EngineBitsTest, PartsOfDifferentFloatTypesShareTilesWithoutATrace) {
  using T = TypeParam;
  for (const PlanShape& shape : this->Shapes()) {
    const auto engine = *Engine::Load(MakePlan(shape));
    const int64_t outputs = engine->output_columns();
    const Matrix<float> x32 = UniformFloatRows({.rows = 151, .cols = shape.columns, .seed = 10});
    const Matrix<double> x64 = Converted<double, float>(x32.view());
    const Matrix<T> expected = MustTransform<T>(*engine, WireRows(x64));
    Matrix<T> y(151, outputs);
    std::vector<TransformPart> parts;
    int64_t first = 0;
    for (const int64_t rows : {1, 0, 7, 48, 3, 49, 43}) {
      TransformPart part{
          .rows = (parts.size() % 2 == 0 ? WireRows(x32) : WireRows(x64)).Slice(first, rows),
          .features = y.data() + first * outputs};
      parts.push_back(std::move(part));
      first += rows;
    }
    ASSERT_EQ(first, 151);
    EngineScratch scratch;
    for (int again = 0; again < 2; ++again) {  // the second time, the scratch has been used before
      std::fill_n(y.data(), y.size(), T{-1});
      engine->Transform(absl::MakeSpan(parts), scratch);
      for (const TransformPart& part : parts) EXPECT_TRUE(part.status.ok());
      EXPECT_TRUE(SameBits(y, expected)) << shape.ToText();
    }
  }
}

TYPED_TEST(EngineBitsTest, Float32AndFloat64EncodingsOfEqualValuesGiveEqualBits) {
  using T = TypeParam;
  for (const PlanShape& shape : this->Shapes()) {
    const Plan plan = MakePlan(shape);
    const Matrix<float> x32 = UniformFloatRows({.rows = 60, .cols = shape.columns, .seed = 11});
    const Matrix<double> x64 = Converted<double, float>(x32.view());
    EXPECT_TRUE(
        SameBits(MustTransform<T>(plan, WireRows(x32)), MustTransform<T>(plan, WireRows(x64))))
        << shape.ToText();
  }
}

TYPED_TEST(EngineBitsTest, InputsAndOutputsMayStandAtAnyAlignment) {
  using T = TypeParam;
  const auto engine = *Engine::Load(MakePlan(this->Shapes()[1]));
  const Matrix<float> x = UniformFloatRows({.rows = 20, .cols = 17, .seed = 12});
  const Matrix<T> expected = MustTransform<T>(*engine, WireRows(x));
  std::string bytes(sizeof(float) * x.size() + 1, '\0');
  std::memcpy(bytes.data() + 1, x.data(), sizeof(float) * x.size());
  std::vector<T> out(expected.size() + 1);
  RowsView rows = WireRows(x);
  rows.data = bytes.data() + 1;
  TransformPart part{.rows = rows, .features = out.data() + 1, .status = absl::OkStatus()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_TRUE(SameBits(out.data() + 1, expected.data(), expected.size()));
}

TYPED_TEST(EngineBitsTest, SparseWEqualsTheDenseWWithTheSameElements) {
  using T = TypeParam;
  const PlanShape shape{.serving_type = this->kType,
                        .feature_count = 600,
                        .centre = true,
                        .w = WKind::kSparse,
                        .outputs = 37};
  const Plan sparse = MakePlan(shape);
  Plan dense = MakePlan(shape);
  auto& stages = std::get<ServingStages<T>>(dense.stages);
  const auto& w =
      std::get<SparseProjection<T>>(std::get<ServingStages<T>>(sparse.stages).projection);
  Matrix<T> matrix(w.rows, w.columns);
  for (int64_t k = 0; k < w.rows; ++k) {
    for (int64_t i = w.row_offsets[k]; i < w.row_offsets[k + 1]; ++i) {
      matrix(k, w.column_indices[i]) = w.values[i];
    }
  }
  stages.projection = DenseProjection<T>{std::move(matrix)};
  const Matrix<float> x = UniformFloatRows({.rows = 55, .cols = 5, .seed = 13});
  EXPECT_TRUE(
      SameBits(MustTransform<T>(sparse, WireRows(x)), MustTransform<T>(dense, WireRows(x))));
}

TYPED_TEST(EngineBitsTest, TriangularWEqualsTheDenseWWithZerosBelow) {
  using T = TypeParam;
  const PlanShape shape{.serving_type = this->kType, .feature_count = 530, .w = WKind::kTriangular};
  const Plan triangular = MakePlan(shape);
  Plan dense = MakePlan(shape);
  auto& stages = std::get<ServingStages<T>>(dense.stages);
  const auto& w =
      std::get<TriangularProjection<T>>(std::get<ServingStages<T>>(triangular.stages).projection);
  Matrix<T> matrix(530, 530);
  for (int64_t k = 0; k < 530; ++k) {
    for (int64_t j = k; j < 530; ++j) matrix(k, j) = w.elements.data()[w.RowOffset(k) + j - k];
  }
  stages.projection = DenseProjection<T>{std::move(matrix)};
  const Matrix<float> x = UniformFloatRows({.rows = 20, .cols = 5, .seed = 14});
  EXPECT_TRUE(
      SameBits(MustTransform<T>(triangular, WireRows(x)), MustTransform<T>(dense, WireRows(x))));
}

TYPED_TEST(EngineBitsTest, AllTargetsWithFusedMultiplyAddGiveEqualBits) {
  using T = TypeParam;
  for (const PlanShape& shape : this->Shapes()) {
    const Plan plan = MakePlan(shape);
    const Matrix<float> x = UniformFloatRows({.rows = 50, .cols = shape.columns, .seed = 15});
    Matrix<T> first;
    for (const VectorTarget& target : SupportedVectorTargets()) {
      if (!target.fused) continue;
      const ForcedVectorTarget forced(target);
      const Matrix<T> y = MustTransform<T>(plan, WireRows(x));
      if (first.empty()) first = y.Clone();
      EXPECT_TRUE(SameBits(y, first)) << target.name << shape.ToText();
    }
  }
}

// Compares features that are computed in two ways. In the first way, a block's features are
// computed while its products are still in registers or in the first-level cache. In the second,
// the products are stored, and a program reads them afterwards.
TYPED_TEST(EngineBitsTest, FeaturesMadeBeforeTheProductsAreStoredAreThoseMadeAfterwards) {
  using T = TypeParam;
  const PlanShape kShapes[] = {
      {.feature_count = 70, .kernel = "rbf(gamma=0.3)"},
      {.feature_count = 67, .kernel = "rbf(gamma=40)"},
      {.feature_count = 70, .kernel = "poly(degree=3, coef0=1)"},
      {.feature_count = 70, .kernel = "linear()"},
      {.features = FeatureKind::kPhase, .feature_count = 69},
      {.features = FeatureKind::kSinCos, .feature_count = 142},
  };
  for (PlanShape shape : kShapes) {
    for (const int64_t columns : {17, 520}) {
      shape.serving_type = this->kType;
      shape.columns = columns;
      const Plan plan = MakePlan(shape);
      const auto& features =
          std::get<ProductFeatures<T>>(std::get<ServingStages<T>>(plan.stages).features);
      const int64_t count = features.rows.rows();
      const Matrix<float> x32 = UniformFloatRows({.rows = 50, .cols = columns, .seed = 16});
      const Matrix<T> x = Converted<T, float>(x32.view());
      for (const VectorTarget& target : SupportedVectorTargets()) {
        const ForcedVectorTarget forced(target);
        const auto panels = PanelMatrix<T>::PackTransposed(features.rows.view());
        Matrix<T> products(50, count);
        std::vector<T*> rows;
        for (int64_t i = 0; i < 50; ++i) rows.push_back(products.row(i));
        panels.Multiply(x.data(), columns, 50, rows.data());
        std::vector<T> norms(count);
        ChainSquaredNorms(features.rows.data(), columns, count, columns, norms.data());
        Matrix<T> expected(50, count * features.program.results());
        for (int64_t i = 0; i < 50; ++i) {
          KernelOperands<T> operands;
          operands.products = products.row(i);
          operands.row_norms = norms.data();
          operands.offsets = features.offsets.empty() ? nullptr : features.offsets.data();
          ChainSquaredNorms(x.row(i), columns, 1, columns, &operands.x_norm);
          EvaluateKernel(features.program, operands, count, expected.row(i));
        }
        EXPECT_TRUE(SameBits(MustTransform<T>(plan, WireRows(x32)), expected))
            << target.name << shape.ToText();
      }
    }
  }
}

// An rbf row that equals a landmark has a distance of exactly 0 from it, in either serving type,
// because the norms and the product are computed by the same chain of operations.
TYPED_TEST(EngineBitsTest, LandmarkHasSimilarityExactlyOneWithItself) {
  using T = TypeParam;
  const Plan plan = MakePlan({.serving_type = this->kType,
                              .columns = 700,
                              .feature_count = 40,
                              .kernel = "rbf(gamma=1000)"});
  const auto& rows =
      std::get<ProductFeatures<T>>(std::get<ServingStages<T>>(plan.stages).features).rows;
  const Matrix<T> y = MustTransform<T>(plan, WireRows(rows));
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(y(i, i), T{1});
}

}  // namespace
}  // namespace phimap::testing
