#include "core/certificate/self_check.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/linalg/panel_product.h"
#include "gtest/gtest.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kPlanColumns = 6;

std::vector<float> FloatsOf(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Returns the rows of A', the matrix of the plan with whose rows features are computed, by products
// or distances.
Matrix<double> LandmarksOf(const Plan& plan) {
  const auto& stages = std::get<ServingStages<float>>(plan.stages);
  return Converted<double, float>(std::get<ProductFeatures<float>>(stages.features).rows.view());
}

class SelfCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!VectorTargetFuses()) GTEST_SKIP() << "no reference vectors without fused multiply-add";
  }

  Plan PlanOf(const char* kernel) {
    return MakePlan({.columns = kPlanColumns, .feature_count = 9, .kernel = kernel});
  }

  const Matrix<float> rows_ = UniformFloatRows({.rows = 4, .cols = kPlanColumns, .seed = 3});
};

TEST_F(SelfCheckTest, RowsThatHaveFeaturesStayWhereTheyAre) {
  const Plan plan = PlanOf("rbf(gamma=0.5)");
  const Matrix<double> anchors = LandmarksOf(plan);
  const auto check = MakeSelfCheck(plan, rows_, anchors.view().Rows(0, 4));
  ASSERT_TRUE(check.has_value());
  EXPECT_EQ(check->rows, 4);
  EXPECT_EQ(std::memcmp(check->rows_float32_le.data(), rows_.data(), sizeof(float) * rows_.size()),
            0);
}

// Except at a landmark, gamma · distance² is over 1,000. So exp(−gamma · distance²) is 0 in float32
// there.
TEST_F(SelfCheckTest, UnderASharpKernelEachRowIsMovedToWhereFeaturesAreNotZero) {
  const Plan plan = PlanOf("rbf(gamma=100000)");
  ASSERT_FALSE(MakeSelfCheck(plan, rows_, {}).has_value());
  const Matrix<double> anchors = LandmarksOf(plan);
  const auto check = MakeSelfCheck(plan, rows_, anchors.view().Rows(0, 4));
  ASSERT_TRUE(check.has_value());
  ASSERT_EQ(check->rows, 4);
  const std::vector<float> rows = FloatsOf(check->rows_float32_le);
  const std::vector<float> features = FloatsOf(check->features_le);
  for (int64_t i = 0; i < 4; ++i) {
    // The reference vector has a feature of at least K(x, x)/1024 = 1/1024.
    EXPECT_GE(features[9 * i + i], 1.0f / 1024) << i;
    // The row is not the landmark itself.
    EXPECT_LT(features[9 * i + i], 1) << i;
    EXPECT_FALSE(
        std::equal(anchors.row(i), anchors.row(i) + kPlanColumns, &rows[i * kPlanColumns]));
  }
  const auto engine = *Engine::Load(plan);
  EXPECT_TRUE(*VerifySelfCheck(*engine, *check));
}

// The rows x are ten times as long as the landmarks a. So |x·a| is about 10, and its 42nd power
// overflows float32.
TEST_F(SelfCheckTest, RowsWhoseFeaturesOverflowAreMovedToWhereTheyDoNot) {
  const Plan plan = PlanOf("poly(degree=42, gamma=1, coef0=0)");
  Matrix<float> far = rows_.Clone();
  for (int64_t i = 0; i < far.size(); ++i) far.data()[i] *= 100;
  ASSERT_FALSE(MakeSelfCheck(plan, far, {}).has_value());
  const Matrix<double> anchors = LandmarksOf(plan);
  const auto check = MakeSelfCheck(plan, far, anchors.view().Rows(0, 4));
  ASSERT_TRUE(check.has_value());
  EXPECT_EQ(check->rows, 4);
  const auto engine = *Engine::Load(plan);
  EXPECT_TRUE(*VerifySelfCheck(*engine, *check));
}

TEST_F(SelfCheckTest, ARowWithoutFeaturesToCompareIsLeftOut) {
  const Plan plan = PlanOf("linear()");
  Matrix<float> rows = rows_.Clone();
  std::fill_n(rows.row(1), kPlanColumns, 0.0f);
  std::fill_n(rows.row(2), kPlanColumns, 3e38f);
  const auto check = MakeSelfCheck(plan, rows, {});
  ASSERT_TRUE(check.has_value());
  EXPECT_EQ(check->rows, 2);
  std::fill_n(rows.data(), rows.size(), 0.0f);
  EXPECT_FALSE(MakeSelfCheck(plan, rows, {}).has_value());
}

}  // namespace
}  // namespace phimap::testing
