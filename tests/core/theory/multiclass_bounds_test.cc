#include "core/theory/multiclass_bounds.h"

#include <cmath>

#include "core/theory/projection_bounds.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(MulticlassBoundsTest, HaveTheirGoldenValues) {
  EXPECT_NEAR(ClassesMargin(0.5, 0.05), 0.3509391, 5e-8);
  EXPECT_EQ(AngleDimensions(0.05, 10.0 * 1000, 0.05), 23169);
  EXPECT_NEAR(OneParameterCriticalDistortion(0.5, 10), 0.0592117, 5e-8);
  EXPECT_NEAR(OneParameterCriticalDistortion(0.9, 3), 0.2250574, 5e-8);
}

TEST(MulticlassBoundsTest, NothingIsLostWithoutDistortionAndMoreWithMore) {
  for (double margin : {1.0, 0.5, 0.01}) {
    EXPECT_NEAR(ClassesMargin(margin, 1e-12), margin, 1e-11);
    double before = margin;
    for (double e = 0.01; e < 1; e += 0.01) {
      EXPECT_LT(ClassesMargin(margin, e), before) << e;
      before = ClassesMargin(margin, e);
    }
  }
}

TEST(MulticlassBoundsTest, TheDistortionForAMarginLeavesIt) {
  for (double margin : {1.0, 0.5, 0.01, 1e-4}) {
    for (double share : {0.1, 0.5, 0.9}) {
      const double e = ClassesDistortion(margin, share * margin);
      EXPECT_NEAR(ClassesMargin(margin, e), share * margin, 1e-11);
    }
  }
}

// The expected values are Theorem 9 as printed, at e = 0.001, 0.05 and 0.3, computed with 40 digits
// in Python.
TEST(MulticlassBoundsTest, OneParameterIsTheoremNine) {
  constexpr double kDistortions[] = {0.001, 0.05, 0.3};
  struct {
    double margin;
    int64_t classes;
    double printed[3];
  } const cases[] = {
      {0.9, 2, {0.4488988988988989, 0.39210526315789473, -0.02142857142857143}},
      {0.9, 10, {0.1996470111040601, 0.1171667619723475, -0.4834000666178923}},
      {0.9, 1000, {0.018162899308604208, -0.08302016590802841, -0.8197685780903606}},
      {0.2, 2, {0.0981981981981982, 0.005263157894736842, -0.6714285714285714}},
      {0.2, 10, {0.042808889799345134, -0.05583428681316254, -0.774088903692865}},
      {0.2, 1000, {0.0024790871781327118, -0.10032027078657942, -0.8488374617978579}}};
  for (const auto& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.margin << " " << c.classes);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(OneParameterMargin(c.margin, kDistortions[i], c.classes), c.printed[i], 1e-14);
    }
    const double critical = OneParameterCriticalDistortion(c.margin, c.classes);
    EXPECT_GT(OneParameterMargin(c.margin, critical * 0.999, c.classes), 0);
    EXPECT_LT(OneParameterMargin(c.margin, critical * 1.001, c.classes), 0);
    const double half = OneParameterDistortion(c.margin, c.classes);
    EXPECT_NEAR(OneParameterMargin(c.margin, half, c.classes),
                c.margin / std::sqrt(2.0 * static_cast<double>(c.classes)) / 2, 1e-14);
  }
}

// L is the number of classes, γ the margin, and n the number of dimensions that keeps half of the
// margin. n is about 16·2L/γ² times a logarithm, so it is proportional to L.
TEST(MulticlassBoundsTest, OneParameterGrowsInProportionToTheClasses) {
  const auto rows = [](int64_t classes) {
    return static_cast<double>(
        AngleDimensions(OneParameterDistortion(0.5, classes), 1, 0.05).value());
  };
  EXPECT_NEAR(rows(4000) / rows(1000), 4, 0.05);
}

}  // namespace
}  // namespace phimap::testing
