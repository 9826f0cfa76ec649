#include <atomic>
#include <vector>

#include "core/linalg/blas.h"
#include "gtest/gtest.h"
#include "server/mapping/forecasts.h"
#include "tests/support/threads.h"

namespace phimap {
namespace {

BuildSpec Spec(const char* mapping) {
  return {.mapping = MappingSpec::Parse(mapping).value(),
          .kernel = KernelExpression::Parse("rbf(gamma=scale)").value()};
}

TEST(BuildEstimatorTest, SecondsAreWorkOverSpeed) {
  BuildEstimator estimator([] { return BuildSpeed{1e9, 1e6}; });
  const BuildEstimate estimate = estimator.Estimate(Spec("f2(landmarks=500)"), 20'000, 16);
  const Work work = CostOfBuild(Spec("f2(landmarks=500)"), 20'000, 16).work;
  EXPECT_EQ(estimate.cost.work.flops(), work.flops());
  EXPECT_GT(estimate.seconds, work.flops() / 1e9 + work.elements / 1e6);
  EXPECT_LT(estimate.seconds, 2 * work.flops() / 1e9 + work.elements / 1e6);
  BuildEstimator twice([] { return BuildSpeed{2e9, 2e6}; });
  EXPECT_DOUBLE_EQ(twice.Estimate(Spec("f2(landmarks=500)"), 20'000, 16).seconds,
                   estimate.seconds / 2);
}

TEST(BuildEstimatorTest, MeasuresOnceHoweverManyAsk) {
  std::atomic<int> measured{0};
  BuildEstimator estimator([&] {
    ++measured;
    return BuildSpeed{1e9, 1e6};
  });
  EXPECT_EQ(measured, 0);
  testing::RunTogether(4, [&](int) { estimator.Estimate(Spec("f1(landmarks=5)"), 100, 3); });
  EXPECT_EQ(measured, 1);
}

// The bounds catch wrong units, not slow machines: every machine of this century stays within them,
// even with sanitizers.
TEST(BuildEstimatorTest, TheMachineHasASpeed) {
  UseOneBlasThread();
  const BuildSpeed speed = MeasureBuildSpeed();
  EXPECT_GT(speed.product_flops_per_second, 1e7);
  EXPECT_LT(speed.product_flops_per_second, 1e13);
  EXPECT_GT(speed.elements_per_second, 1e5);
  EXPECT_LT(speed.elements_per_second, 1e12);
}

}  // namespace
}  // namespace phimap
