// Tests that sparse rows give the same bits as their dense form, under every kind of plan and on
// every vector unit.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/sparse_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

template <typename T>
class EngineSparseTest : public ::testing::Test {
 protected:
  static constexpr FloatType kType = sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
  static std::vector<PlanShape> Shapes() { return ShapesOfEveryKind(kType); }
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EngineSparseTest, Types);

template <typename T>
Matrix<T> Transformed(const Engine& engine, std::vector<TransformPart> parts, Matrix<T> y) {
  for (TransformPart& part : parts) part.features = y.data();
  int64_t first = 0;
  for (TransformPart& part : parts) {
    part.features = y.row(first);
    first += part.rows.rows();
  }
  EngineScratch scratch;
  engine.Transform(absl::MakeSpan(parts), scratch);
  for (const TransformPart& part : parts) EXPECT_TRUE(part.status.ok()) << part.status;
  return y;
}

template <typename T>
Matrix<T> Transformed(const Engine& engine, const ExamplesView& rows) {
  std::vector<TransformPart> parts(1);
  parts[0].rows = rows;
  return Transformed(engine, std::move(parts), Matrix<T>(rows.rows(), engine.output_columns()));
}

// Sparse rows with at least one number each, because a cosine or a normalised kernel has no value
// for an empty row.
Matrix<float> SparseFloats(const PlanShape& shape, int64_t rows) {
  Matrix<float> x = Thinned(UniformFloatRows({.rows = rows, .cols = shape.columns, .seed = 21}),
                            shape.columns / 4 + 1);
  for (int64_t i = 0; i < rows; ++i) x(i, i % shape.columns) = 0.5f;
  return x;
}

TYPED_TEST(EngineSparseTest, EveryPlanGivesTheBitsOfTheDenseFormOnEveryTarget) {
  using T = TypeParam;
  for (const PlanShape& shape : this->Shapes()) {
    const Plan plan = MakePlan(shape);
    const Matrix<float> dense = SparseFloats(shape, 100);
    const SparseRowsOf<float> sparse = SparseOf(dense);
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      const auto engine = *Engine::Load(plan);
      const Matrix<T> expected = MustTransform<T>(*engine, WireRows(dense));
      for (const int64_t rows : {1, 2, 47, 48, 49, 100}) {
        const Matrix<T> y = Transformed<T>(*engine, ExamplesView(sparse.view()).Slice(0, rows));
        EXPECT_TRUE(SameBits(y.data(), expected.data(), y.size()))
            << target.name << shape.ToText() << " " << rows << " rows";
      }
      const Matrix<T> last = Transformed<T>(*engine, sparse.view().Slice(99, 1));
      EXPECT_TRUE(SameBits(last.data(), expected.row(99), last.size())) << shape.ToText();
    }
  }
}

TYPED_TEST(EngineSparseTest, ZerosMayBeNamedAndEitherFloatTypeMayCarryTheNumbers) {
  using T = TypeParam;
  for (const PlanShape& shape : this->Shapes()) {
    const auto engine = *Engine::Load(MakePlan(shape));
    Matrix<float> dense = SparseFloats(shape, 60);
    const Matrix<T> expected = MustTransform<T>(*engine, WireRows(dense));
    for (int64_t n = 0; n < dense.size(); n += 3) {
      if (dense.data()[n] == 0) dense.data()[n] = -0.0f;
    }
    const Matrix<double> wide = Converted<double, float>(dense.view());
    // With a large step, few zeros are stored, and the engine visits only the stored numbers. With
    // step 1, all zeros are stored, and the engine makes rows dense.
    for (const int64_t step : {1, 4, 9}) {
      const auto some = [&](int64_t i, int64_t j) {
        return dense(i, j) != 0 || (i + j) % step == 0;
      };
      EXPECT_TRUE(SameBits(Transformed<T>(*engine, SparseOf(dense, some).view()), expected))
          << shape.ToText() << " " << step;
      EXPECT_TRUE(SameBits(Transformed<T>(*engine, SparseOf(wide, some).view()), expected))
          << shape.ToText() << " " << step;
    }
  }
}

TYPED_TEST(EngineSparseTest, DenseAndSparsePartsOfOneCallLeaveNoTraceInEachOther) {
  using T = TypeParam;
  for (const PlanShape& shape : this->Shapes()) {
    const auto engine = *Engine::Load(MakePlan(shape));
    const Matrix<float> dense = SparseFloats(shape, 104);
    const SparseRowsOf<float> few = SparseOf(dense);
    const SparseRowsOf<float> all = SparseOf(dense, [](int64_t, int64_t) { return true; });
    const ExamplesView forms[] = {few.view(), WireRows(dense), all.view()};
    std::vector<TransformPart> parts;
    int64_t first = 0;
    for (const int64_t rows : {3, 50, 1, 0, 40, 10}) {
      TransformPart part{.rows = forms[parts.size() % 3].Slice(first, rows)};
      parts.push_back(std::move(part));
      first += rows;
    }
    ASSERT_EQ(first, 104);
    const Matrix<T> y =
        Transformed(*engine, std::move(parts), Matrix<T>(104, engine->output_columns()));
    EXPECT_TRUE(SameBits(y, MustTransform<T>(*engine, WireRows(dense)))) << shape.ToText();
  }
}

TYPED_TEST(EngineSparseTest, OffsetsIndicesAndValuesMayStandAtAnyAlignment) {
  using T = TypeParam;
  const auto engine = *Engine::Load(MakePlan(this->Shapes()[0]));
  const Matrix<float> dense = SparseFloats(this->Shapes()[0], 20);
  const SparseRowsOf<float> sparse = SparseOf(dense);
  SparseRowsView view = sparse.view();
  std::vector<std::string> moved;
  const auto move = [&](const char*& data, size_t bytes) {
    moved.push_back(std::string(1, 'x') + std::string(data, bytes));
    data = moved.back().data() + 1;
  };
  moved.reserve(3);
  move(view.offsets, 8 * sparse.offsets.size());
  move(view.indices, 4 * sparse.indices.size());
  move(view.values, 4 * sparse.values.size());
  EXPECT_TRUE(SameBits(Transformed<T>(*engine, view), MustTransform<T>(*engine, WireRows(dense))));
}

TEST(EngineSparseRowsTest, RowThatOverflowsIsNamedAndItsNeighboursAreNot) {
  const auto engine = *Engine::Load(MakePlan({.columns = 50, .kernel = "poly(degree=3)"}));
  Matrix<double> dense(3, 50);
  dense(0, 1) = dense(2, 1) = 0.5;
  dense(1, 7) = 1e30;
  const auto sparse = SparseOf(dense);
  Matrix<float> y(3, engine->output_columns());
  TransformPart part{.rows = sparse.view(), .features = y.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_EQ(part.status.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(part.status.message().substr(0, 9), "rows[1]: ");
}

TEST(EngineSparseRowsTest, SparseRowsAreExpectedToTakeTheTimeOfTheirNumbers) {
  const auto engine = *Engine::Load(MakePlan({.columns = 1000, .feature_count = 100}));
  const Matrix<float> dense = Thinned(UniformFloatRows({.rows = 10, .cols = 1000}), 101);
  const double all = engine->Multiplications(WireRows(dense));
  EXPECT_EQ(all, static_cast<double>(10 * engine->multiplications_per_row()));
  const double few = engine->Multiplications(SparseOf(dense).view());
  EXPECT_LT(few, all / 8);
  EXPECT_GT(few, 0);
  const auto named = [](int64_t step) { return [=](int64_t, int64_t j) { return j % step == 0; }; };
  EXPECT_LE(engine->Multiplications(SparseOf(dense, named(4)).view()), all);
  // If every third number is stored, the engine makes rows dense.
  EXPECT_EQ(engine->Multiplications(SparseOf(dense, named(3)).view()), all);
}

TEST(EngineSparseRowsTest, OtherColumnsAreRefusedWithBothNumbers) {
  const auto engine = *Engine::Load(MakePlan({.columns = 5}));
  const Matrix<float> dense = UniformFloatRows({.rows = 1, .cols = 4});
  EXPECT_EQ(engine->CheckTakes(SparseOf(dense).view()).message(),
            "examples.sparse.columns: expected 5 columns, got 4");
  EXPECT_EQ(engine->CheckTakes(StringsView{}).message(),
            "examples.text: the version maps rows of 5 numbers, dense or sparse; got text");
}

}  // namespace
}  // namespace phimap::testing
