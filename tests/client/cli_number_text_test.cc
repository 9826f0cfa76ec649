#include <gtest/gtest.h>

#include "client/cli/views/text.h"

namespace phimap::cli {
namespace {

TEST(NumberTextTest, WritesNumbersAsPeopleReadThem) {
  EXPECT_EQ(DurationText(59.9), "59 s");
  EXPECT_EQ(DurationText(185), "3:05");
  EXPECT_EQ(DurationText(3723), "1:02:03");
}

// A share that is positive is never shown as 0.
TEST(NumberTextTest, SmallSharesKeepTheirDigits) {
  EXPECT_EQ(PercentText(0.0316), "3.16 %");
  EXPECT_EQ(PercentText(0.0001), "0.01 %");
  EXPECT_EQ(PercentText(0.0000123), "0.00123 %");
  EXPECT_EQ(PercentText(0), "0.00 %");
  EXPECT_EQ(ShortPercent(0.0316), "3.16 %");
}

TEST(NumberTextTest, ABoundIsNeverShownSmallerThanItIs) {
  EXPECT_EQ(UpperNumber(0.2589), "0.26");
  EXPECT_EQ(UpperNumber(0.2511), "0.26");
  EXPECT_EQ(UpperNumber(0.25), "0.25");
  EXPECT_EQ(UpperNumber(0.00991), "0.01");
  EXPECT_EQ(UpperNumber(25.01), "26");
  EXPECT_EQ(UpperNumber(3.14e-9), "3.2e-09");
  EXPECT_EQ(UpperNumber(0), "0");
}

}  // namespace
}  // namespace phimap::cli
