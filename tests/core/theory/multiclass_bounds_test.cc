#include "core/theory/multiclass_bounds.h"

#include <cmath>

#include "core/theory/projection_bounds.h"
#include "gtest/gtest.h"

namespace phimap {
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

// Theorem 9 as printed, term by term.
TEST(MulticlassBoundsTest, OneParameterIsTheoremNine) {
  for (double margin : {0.9, 0.2}) {
    for (int64_t classes : {2, 10, 1000}) {
      for (double e : {0.001, 0.05, 0.3}) {
        const double printed =
            -2 * e / (1 - e) +
            (1 + e) * margin / (std::sqrt(2.0 * static_cast<double>(classes)) * (1 - e));
        EXPECT_NEAR(OneParameterMargin(margin, e, classes), printed, 1e-14);
      }
      const double critical = OneParameterCriticalDistortion(margin, classes);
      EXPECT_GT(OneParameterMargin(margin, critical * 0.999, classes), 0);
      EXPECT_LT(OneParameterMargin(margin, critical * 1.001, classes), 0);
      const double half = OneParameterDistortion(margin, classes);
      EXPECT_NEAR(OneParameterMargin(margin, half, classes),
                  margin / std::sqrt(2.0 * static_cast<double>(classes)) / 2, 1e-14);
    }
  }
}

// Its n for half of the margin is about 16·2L/γ²·ln: in proportion to the classes.
TEST(MulticlassBoundsTest, OneParameterGrowsInProportionToTheClasses) {
  const auto rows = [](int64_t classes) {
    return static_cast<double>(
        AngleDimensions(OneParameterDistortion(0.5, classes), 1, 0.05).value());
  };
  EXPECT_NEAR(rows(4000) / rows(1000), 4, 0.05);
}

}  // namespace
}  // namespace phimap
