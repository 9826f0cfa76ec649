// Tests the bound on what folding changes, from both sides, and the measurement that decides
// whether a head is served folded.
#include "core/head/folding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/head/head_program.h"
#include "gtest/gtest.h"
#include "tests/core/head/head_plans.h"
#include "tests/support/heads.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// |folded − unfolded| of the first score of each row, and the bound.
struct Difference {
  double actual = 0;
  double bound = 0;
};
std::vector<Difference> Differences(const NamedPlan& plan, const Head& head,
                                    const ExamplesView& rows) {
  const Matrix<double> folded = MustScore(MustFold(plan, head), rows);
  const Matrix<double> unfolded = MustScore(MustNotFold(plan, head), rows);
  const Matrix<double> q = MustTransformExamples(**Engine::Load(WithoutW(plan.make())), rows);
  const FoldingBound bound(plan.make(), head);
  EXPECT_EQ(bound.features(), q.cols());
  std::vector<Difference> differences;
  std::vector<double> bounds(head.scores());
  for (int64_t i = 0; i < q.rows(); ++i) {
    bound.Compute(q.row(i), bounds.data());
    for (int64_t s = 0; s < head.scores(); ++s) {
      differences.push_back({std::abs(folded(i, s) - unfolded(i, s)), bounds[s]});
    }
  }
  return differences;
}

TEST(FoldingBoundTest, NoScoreOfAnyPlanDiffersByMore) {
  int differ = 0;
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    for (const NamedPlan& plan : PlansOfEveryKind(type)) {
      const std::shared_ptr<const Engine> engine = *Engine::Load(plan.make());
      const Head head = MakeHead({.features = engine->output_columns(), .classes = 4});
      const ExampleRows rows(*engine, 60);
      for (const Difference& difference : Differences(plan, head, rows.view())) {
        EXPECT_LE(difference.actual, difference.bound) << plan.name;
        differ += difference.actual > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(differ, 1000);  // the two programs do round differently
}

// Numbers for which nearly every rounding of both chains goes as far as it can, in opposite
// directions. All q are 1, W is a column (1, w, w, …) and V is one number v slightly over 1. With u
// the unit round-off and w slightly under u, 1 + w rounds to 1, so the feature loses every w. In
// the folded chain v·w is slightly over u, so each step rounds s + v·w up to the next number, s +
// 2u. After m terms the scores differ by 2(m − 1)u. B is close to 1, and the bound to (2·r(m) +
// 1)·u, where r(m) = m + 2 for m of up to 512. So the difference is nearly the bound: half of the
// bound is too small.
template <typename T>
Matrix<T> AdversarialW(int64_t m) {
  constexpr T kUnit = std::numeric_limits<T>::epsilon() / 2;
  Matrix<T> w(m, 1);
  for (int64_t k = 0; k < m; ++k) w(k, 0) = k == 0 ? 1 : kUnit * (1 - 4 * kUnit);
  return w;
}
template <typename T>
Head AdversarialHead() {
  Head head = MakeHead({.features = 1, .classes = 0});
  head.weights(0, 0) = 1 + 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
  head.intercepts[0] = 0;
  return head;
}

template <typename T>
class FoldingBoundOfTypeTest : public ::testing::Test {};
using FoldingTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FoldingBoundOfTypeTest, FoldingTypes);

TYPED_TEST(FoldingBoundOfTypeTest, HalfOfItIsTooSmall) {
  using T = TypeParam;
  constexpr int64_t kTerms = 512;
  const Matrix<T> w = AdversarialW<T>(kTerms);
  const NamedPlan plan{"values", [&] { return PlanOfValues<T>(w); }};
  Matrix<float> ones(1, kTerms);
  std::fill_n(ones.data(), kTerms, 1.0f);
  const Difference difference = Differences(plan, AdversarialHead<T>(), WireRows(ones)).front();
  EXPECT_LE(difference.actual, difference.bound);
  EXPECT_GT(difference.actual, difference.bound / 2);
}

// Without W, the unfolded chain is one of float64, and only the folded chain of float32 loses: of V
// = (1, w, w, …) everything but the 1.
Difference DifferenceWithoutW(double intercept) {
  constexpr int64_t kTerms = 512;
  const Matrix<float> w = AdversarialW<float>(kTerms);
  const NamedPlan plan{"values", [&] { return WithoutW(PlanOfValues(w)); }};
  Head head = MakeHead({.features = kTerms, .classes = 0});
  std::copy_n(w.data(), kTerms, head.weights.data());
  head.intercepts[0] = intercept;
  Matrix<float> ones(1, kTerms);
  std::fill_n(ones.data(), kTerms, 1.0f);
  return Differences(plan, head, WireRows(ones)).front();
}

TEST(FoldingBoundTest, HalfOfItIsTooSmallWithoutW) {
  const Difference difference = DifferenceWithoutW(0);
  EXPECT_LE(difference.actual, difference.bound);
  EXPECT_GT(difference.actual, difference.bound / 2);
}

// From 2⁵³ on, numbers are 2 apart. 2⁵³ + 1, the folded sum, rounds to 2⁵³, and the unfolded sum,
// in which the 1 is a little larger, to 2⁵³ + 2. The bound grants 2·2⁻⁵³·2⁵³ = 2 to the additions.
TEST(FoldingBoundTest, HalfOfItIsTooSmallForALargeIntercept) {
  const Difference difference = DifferenceWithoutW(0x1p53);
  EXPECT_EQ(difference.actual, 2);
  EXPECT_LE(difference.actual, difference.bound);
  EXPECT_GT(difference.actual, difference.bound / 2);
}

TEST(MeasureFoldingTest, FindsTheLargestDifferenceAndTheLargestBound) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    for (const NamedPlan& plan : PlansOfEveryKind(type)) {
      const std::shared_ptr<const Engine> engine = *Engine::Load(plan.make());
      const Head head = MakeHead({.features = engine->output_columns(), .classes = 4});
      const ExampleRows rows(*engine, 100);
      double actual = 0;
      double bound = 0;
      for (const Difference& difference : Differences(plan, head, rows.view())) {
        actual = std::max(actual, difference.actual);
        bound = std::max(bound, difference.bound);
      }
      const FoldingMeasurement measured =
          MeasureFolding(plan.make(), engine, head, rows.view()).value();
      EXPECT_EQ(measured.rows, 100);
      EXPECT_EQ(measured.largest_difference, actual) << plan.name;
      EXPECT_EQ(measured.largest_bound, bound) << plan.name;
    }
  }
}

// Rows whose answer changes, among rows of zeros, whose scores are 0 in both ways.
FoldingMeasurement MeasureChanges(const Head& head, int64_t changes, int64_t rows) {
  const Matrix<float> w = AdversarialW<float>(512);
  Matrix<float> values(rows, 512);
  for (int64_t i = 0; i < changes; ++i) std::fill_n(values.row(i * 7 % rows), 512, 1.0f);
  Plan plan = PlanOfValues(w);
  std::shared_ptr<const Engine> engine = *Engine::Load(plan);
  return MeasureFolding(std::move(plan), std::move(engine), head, WireRows(values)).value();
}

// The class is the sign of the score minus 1 + 3·10⁻⁵, which lies between the unfolded score and
// the folded one: they differ by 2·511·2⁻²⁴ = 6.1·10⁻⁵.
TEST(MeasureFoldingTest, AHeadFoldsUnlessMoreThanOneLabelInAThousandChanges) {
  Head head = MakeHead({.features = 1, .classes = 2});
  head.weights = AdversarialHead<float>().weights.Clone();
  head.intercepts[0] = -(1 + 3e-5);
  EXPECT_EQ(MeasureChanges(head, 0, 1000).changed, 0);
  EXPECT_TRUE(MeasureChanges(head, 0, 1000).Folds());
  EXPECT_EQ(MeasureChanges(head, 1, 1000).changed, 1);
  EXPECT_TRUE(MeasureChanges(head, 1, 1000).Folds());
  EXPECT_EQ(MeasureChanges(head, 2, 1000).changed, 2);
  EXPECT_FALSE(MeasureChanges(head, 2, 1000).Folds());
}

// k rows of 1 among 1,000 rows of 0 have a deviation of about √(k/1000), of which a thousandth is
// 3.2·10⁻⁵ for k = 1 and 4.5·10⁻⁵ for k = 2, both below the difference of 6.1·10⁻⁵; for k = 10 it
// is 10⁻⁴ and above it.
TEST(MeasureFoldingTest, ANumberChangesIfItDiffersByAThousandthOfTheDeviation) {
  const Head head = AdversarialHead<float>();
  EXPECT_EQ(MeasureChanges(head, 1, 1000).changed, 1);
  EXPECT_TRUE(MeasureChanges(head, 1, 1000).Folds());
  EXPECT_EQ(MeasureChanges(head, 2, 1000).changed, 2);
  EXPECT_FALSE(MeasureChanges(head, 2, 1000).Folds());
  EXPECT_EQ(MeasureChanges(head, 10, 1000).changed, 0);
  EXPECT_TRUE(MeasureChanges(head, 10, 1000).Folds());
}

TEST(MeasureFoldingTest, AHeadThatCannotBeFoldedIsNot) {
  Head head = MakeHead({.features = 7});
  head.weights(0, 0) = 1e60;
  Plan plan = MakePlan({.w = WKind::kTriangular});
  std::shared_ptr<const Engine> engine = *Engine::Load(plan);
  const Matrix<float> x = UniformFloatRows({.rows = 10, .cols = 5});
  const FoldingMeasurement measured =
      MeasureFolding(std::move(plan), std::move(engine), head, WireRows(x)).value();
  EXPECT_EQ(measured.rows, 0);
  EXPECT_FALSE(measured.Folds());
}

TEST(MeasureFoldingTest, RowsThatDoNotFitOrOverflowAreErrors) {
  const Head head = MakeHead({.features = 7});
  const PlanShape shape{.kernel = "poly(degree=9, gamma=1, coef0=1)", .w = WKind::kTriangular};
  const std::shared_ptr<const Engine> engine = *Engine::Load(MakePlan(shape));
  const Matrix<float> wide = UniformFloatRows({.rows = 10, .cols = 6});
  EXPECT_THAT(MeasureFolding(MakePlan(shape), engine, head, WireRows(wide)).status(),
              IsError(StatusCode::kInvalidArgument, "COLUMNS_MISMATCH"));
  Matrix<float> huge = UniformFloatRows({.rows = 100, .cols = 5});
  huge(80, 2) = 1e30f;
  EXPECT_THAT(MeasureFolding(MakePlan(shape), engine, head, WireRows(huge)).status(),
              IsError(StatusCode::kOutOfRange, "VALUE_NOT_REPRESENTABLE", "rows[80]"));
}

}  // namespace
}  // namespace phimap::testing
