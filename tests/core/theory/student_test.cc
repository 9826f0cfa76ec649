#include "core/theory/student.h"

#include <cmath>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// Tables of Student's distribution (Abramowitz, Stegun, table 26.10), with the normal quantiles at
// .95 and .975.
TEST(StudentTest, AgreesWithTheTables) {
  struct {
    double z, degrees, quantile;
  } const cases[] = {{1.959964, 6, 2.447},   {1.959964, 10, 2.228}, {1.959964, 30, 2.042},
                     {1.959964, 120, 1.980}, {1.644854, 6, 1.943},  {1.644854, 20, 1.725}};
  for (const auto& c : cases) {
    // The tables have three decimals.
    EXPECT_NEAR(StudentQuantile(c.z, c.degrees), c.quantile, 1e-3 + 5e-4) << c.degrees;
  }
  EXPECT_EQ(StudentQuantile(-1.5, 9), -StudentQuantile(1.5, 9));
  EXPECT_NEAR(StudentQuantile(1.959964, 1e12), 1.959964, 1e-9);
}

}  // namespace
}  // namespace phimap::testing
