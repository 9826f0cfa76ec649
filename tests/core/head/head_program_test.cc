// Tests that scores are those that head_program.h defines, bit by bit, for plans of every kind, and
// that they depend only on plan, head and row.
#include "core/head/head_program.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/linalg/panel_product.h"
#include "gtest/gtest.h"
#include "tests/core/head/head_plans.h"
#include "tests/support/heads.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/sparse_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

// Two classes, a number, few classes, and more scores than a panel of float64 has columns.
constexpr int64_t kClasses[] = {2, 0, 3, 21};

class HeadProgramTest : public ::testing::TestWithParam<FloatType> {
 protected:
  // Calls `test` with each plan, a head for it, and rows that it takes.
  template <typename Test>
  static void ForEveryPlan(Test test) {
    size_t i = 0;
    for (const NamedPlan& plan : PlansOfEveryKind(GetParam())) {
      SCOPED_TRACE(plan.name);
      const std::shared_ptr<const Engine> engine = *Engine::Load(plan.make());
      const Head head =
          MakeHead({.features = engine->output_columns(), .classes = kClasses[i++ % 4]});
      const ExampleRows rows(*engine, 100);
      test(plan, head, rows.view());
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Types, HeadProgramTest,
                         ::testing::Values(FloatType::kFloat32, FloatType::kFloat64),
                         [](const auto& info) { return std::string(FloatTypeName(info.param)); });

TEST_P(HeadProgramTest, ScoresAreTheChainsThatTheArithmeticPrescribes) {
  if (!VectorTargetFuses()) GTEST_SKIP() << "no fused multiply-add, so the bits differ";
  ForEveryPlan([](const NamedPlan& plan, const Head& head, const ExamplesView& rows) {
    EXPECT_TRUE(SameBits(MustScore(MustFold(plan, head), rows),
                         FoldedScoresByDefinition(plan, head, rows)));
    EXPECT_TRUE(SameBits(MustScore(MustNotFold(plan, head), rows),
                         UnfoldedScoresByDefinition(plan, head, rows)));
  });
}

TEST_P(HeadProgramTest, ARowAloneHasTheScoresThatItHasInAnyBatch) {
  ForEveryPlan([](const NamedPlan& plan, const Head& head, const ExamplesView& rows) {
    for (const bool folds : {true, false}) {
      const HeadProgram program = folds ? MustFold(plan, head) : MustNotFold(plan, head);
      Matrix<double> alone(100, program.scores());
      for (int64_t i = 0; i < 100; ++i) {
        const Matrix<double> scores = MustScore(program, rows.Slice(i, 1));
        std::copy_n(scores.data(), scores.size(), alone.row(i));
      }
      // Whole, and in parts whose rows share blocks; the second time, the scratch was used before.
      EXPECT_TRUE(SameBits(MustScore(program, rows), alone));
      Matrix<double> scores(100, program.scores());
      std::vector<ScorePart> parts;
      int64_t first = 0;
      for (const int64_t count : {1, 0, 7, 41, 3, 48}) {
        ScorePart part;
        part.rows = rows.Slice(first, count);
        part.scores = scores.row(first);
        parts.push_back(std::move(part));
        first += count;
      }
      ASSERT_EQ(first, 100);
      EngineScratch scratch;
      for (int again = 0; again < 2; ++again) {
        std::fill_n(scores.data(), scores.size(), -1.0);
        program.Scores(absl::MakeSpan(parts), scratch);
        for (const ScorePart& part : parts) EXPECT_TRUE(part.status.ok()) << part.status;
        EXPECT_TRUE(SameBits(scores, alone)) << (folds ? "folded" : "unfolded");
      }
    }
  });
}

TEST_P(HeadProgramTest, AllTargetsWithFusedMultiplyAddGiveEqualBits) {
  ForEveryPlan([](const NamedPlan& plan, const Head& head, const ExamplesView& rows) {
    for (const bool folds : {true, false}) {
      Matrix<double> first;
      for (const VectorTarget& target : SupportedVectorTargets()) {
        if (!target.fused) continue;
        const ForcedVectorTarget forced(target);
        const HeadProgram program = folds ? MustFold(plan, head) : MustNotFold(plan, head);
        const Matrix<double> scores = MustScore(program, rows.Slice(0, 50));
        if (first.empty()) first = scores.Clone();
        EXPECT_TRUE(SameBits(scores, first)) << target.name;
      }
    }
  });
}

TEST_P(HeadProgramTest, ScoresOfFeaturesAreTheScores) {
  ForEveryPlan([](const NamedPlan& plan, const Head& head, const ExamplesView& rows) {
    const HeadProgram program = MustNotFold(plan, head);
    const Matrix<double> wide = MustTransformExamples(program.engine(), rows);
    const Matrix<float> narrow = Converted<float, double>(wide.view());
    Matrix<double> scores(rows.rows(), program.scores());
    EngineScratch scratch;
    program.ScoresOfFeatures(
        GetParam() == FloatType::kFloat32 ? static_cast<const void*>(narrow.data()) : wide.data(),
        rows.rows(), scores.data(), scratch);
    EXPECT_TRUE(SameBits(scores, MustScore(program, rows)));
  });
}

TEST_P(HeadProgramTest, SparseRowsHaveTheScoresOfTheirDenseForm) {
  const PlanShape shape{.serving_type = GetParam(),
                        .columns = 200,
                        .feature_count = 70,
                        .kernel = "rbf(gamma=0.01)",
                        .w = WKind::kTriangular};
  const NamedPlan plan{"sparse", [shape] { return MakePlan(shape); }};
  const Head head = MakeHead({.features = 70});
  const Matrix<float> dense = Thinned(UniformFloatRows({.rows = 100, .cols = 200}), 20);
  const SparseRowsOf<float> sparse = SparseOf(dense);
  for (const bool folds : {true, false}) {
    const HeadProgram program = folds ? MustFold(plan, head) : MustNotFold(plan, head);
    EXPECT_TRUE(SameBits(MustScore(program, sparse.view()), MustScore(program, WireRows(dense))));
  }
}

TEST_P(HeadProgramTest, ThreadsMayShareAProgram) {
  const NamedPlan plan = PlansOfEveryKind(GetParam())[2];
  const std::shared_ptr<const Engine> engine = *Engine::Load(plan.make());
  const Head head = MakeHead({.features = engine->output_columns()});
  const ExampleRows rows(*engine, 90);
  for (const bool folds : {true, false}) {
    const HeadProgram program = folds ? MustFold(plan, head) : MustNotFold(plan, head);
    const Matrix<double> expected = MustScore(program, rows.view());
    std::vector<Matrix<double>> scores(4);
    std::vector<std::thread> threads;
    for (Matrix<double>& result : scores) {
      threads.emplace_back([&] { result = MustScore(program, rows.view()); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Matrix<double>& result : scores) EXPECT_TRUE(SameBits(result, expected));
  }
}

// Rows 44 and 45 of the second part overflow. They are behind the first block of features, so the
// error must count from the start of the part.
TEST_P(HeadProgramTest, ARowThatOverflowsIsNamedAndDisturbsNobody) {
  const PlanShape shape{.serving_type = GetParam(),
                        .kernel = "poly(degree=9, gamma=1, coef0=1)",
                        .w = WKind::kTriangular};
  const NamedPlan plan{"poly", [shape] { return MakePlan(shape); }};
  const Head head = MakeHead({.features = 7});
  Matrix<double> x = UniformRows({.rows = 60, .cols = 5, .seed = 4});
  for (const bool folds : {true, false}) {
    const HeadProgram program = folds ? MustFold(plan, head) : MustNotFold(plan, head);
    const Matrix<double> good = MustScore(program, WireRows(x));
    Matrix<double> bad = x.Clone();
    for (int64_t j = 0; j < 5; ++j) bad(44, j) = bad(45, j) = 1e100;
    Matrix<double> scores(120, program.scores());
    ScorePart parts[2];
    parts[0].rows = WireRows(x);
    parts[0].scores = scores.data();
    parts[1].rows = WireRows(bad);
    parts[1].scores = scores.row(60);
    EngineScratch scratch;
    program.Scores(absl::MakeSpan(parts), scratch);
    EXPECT_TRUE(parts[0].status.ok());
    EXPECT_THAT(parts[1].status,
                IsError(StatusCode::kOutOfRange, "VALUE_NOT_REPRESENTABLE", "rows[44]"));
    EXPECT_TRUE(SameBits(scores.data(), good.data(), good.size()));
    EXPECT_TRUE(SameBits(scores.row(60), good.data(), 44 * good.cols()));
    EXPECT_TRUE(SameBits(scores.row(106), good.row(46), 14 * good.cols()));
  }
}

// Features of 1 and weights of 1e308 give a score of 2e308, which float64 does not hold.
TEST(HeadProgramOverflowTest, AScoreThatOverflowsIsAnError) {
  Matrix<double> w(2, 2);
  w(0, 0) = w(1, 1) = 1;
  const NamedPlan plan{"values", [&] { return PlanOfValues<double>(w); }};
  Head head = MakeHead({.features = 2, .classes = 0});
  head.weights(0, 0) = head.weights(1, 0) = 1e308;
  Matrix<double> ones(3, 2);
  ones(1, 0) = ones(1, 1) = 1;
  for (const bool folds : {true, false}) {
    const HeadProgram program = folds ? MustFold(plan, head) : MustNotFold(plan, head);
    Matrix<double> scores(3, 1);
    ScorePart part{.rows = WireRows(ones), .scores = scores.data(), .status = absl::OkStatus()};
    EngineScratch scratch;
    program.Scores(absl::MakeSpan(&part, 1), scratch);
    EXPECT_THAT(part.status,
                IsError(StatusCode::kOutOfRange, "VALUE_NOT_REPRESENTABLE", "rows[1]"));
    EXPECT_EQ(scores(0, 0), head.intercepts[0]);
    EXPECT_EQ(scores(2, 0), head.intercepts[0]);
  }
}

TEST(FoldPlanTest, ProductsThatOverflowAreRefused) {
  Head head = MakeHead({.features = 7});
  head.weights(0, 0) = 1e60;
  EXPECT_THAT(FoldPlan(MakePlan({.w = WKind::kTriangular}), head).status(),
              IsError(StatusCode::kFailedPrecondition, "VALUE_NOT_REPRESENTABLE"));
  EXPECT_TRUE(
      FoldPlan(MakePlan({.serving_type = FloatType::kFloat64, .w = WKind::kTriangular}), head)
          .ok());
}

TEST(FoldPlanTest, AHeadOfAnotherPlanIsRefused) {
  EXPECT_THAT(FoldPlan(MakePlan({.w = WKind::kTriangular}), MakeHead({.features = 8})).status(),
              IsError(StatusCode::kInvalidArgument, "PLAN_INVALID", "weights"));
}

// A sparse W of 65,536 rows and one column is small, but with 4,096 classes it would become 2 GiB.
TEST(FoldPlanTest, AFoldedPlanDoesNotTakeGigabytes) {
  constexpr int64_t kRows = kMaxPlanDimension;
  Plan plan;
  plan.input.columns = 1;
  ServingStages<float> stages;
  stages.features = ProductFeatures<float>{Matrix<float>(kRows, 1), KernelProgram()};
  stages.projection = SparseProjection<float>{.rows = kRows,
                                              .columns = 1,
                                              .row_offsets = std::vector<int64_t>(kRows + 1),
                                              .column_indices = {},
                                              .values = {}};
  plan.stages = std::move(stages);
  ASSERT_TRUE(plan.Validate().ok());
  EXPECT_THAT(FoldPlan(std::move(plan), MakeHead({.features = 1, .classes = 4096})).status(),
              IsError(StatusCode::kResourceExhausted, "PROJECTION_TOO_LARGE"));
}

// F2 of 530 landmarks holds a triangle of 140,715 numbers; folded into 3 scores, it holds 530 rows
// of one panel, of at most 64 columns.
TEST(HeadProgramCostTest, AFoldedProgramNeitherHoldsNorMultipliesTheTriangle) {
  const NamedPlan plan{"F2",
                       [] { return MakePlan({.feature_count = 530, .w = WKind::kTriangular}); }};
  const std::shared_ptr<const Engine> engine = *Engine::Load(plan.make());
  const int64_t before_w = (*Engine::Load(WithoutW(plan.make())))->multiplications_per_row();
  const Head head = MakeHead({.features = 530});
  const HeadProgram folded = MustFold(plan, head);
  EXPECT_LE(folded.multiplications_per_row() - before_w, 530 * 64);
  EXPECT_GE(engine->multiplications_per_row() - before_w, 140'715);
  EXPECT_LT(folded.memory_bytes(), engine->memory_bytes() / 2);
  // Unfolded, the program counts only what it adds to the engine that it was given.
  const HeadProgram unfolded = HeadProgram::Unfolded(engine, head).value();
  EXPECT_LE(unfolded.memory_bytes(), (530 + 1) * 64 * 8);
  EXPECT_GE(unfolded.memory_bytes(), 530 * 3 * 8);
  EXPECT_GE(unfolded.multiplications_per_row(), engine->multiplications_per_row() + 530 * 3);
}

}  // namespace
}  // namespace phimap::testing
