#include "gtest/gtest.h"
#include "server/schedule/compute_pool.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(CpuBudgetTest, ReadsTheQuotaOfCgroupV2) {
  EXPECT_THAT(ParseCpuMax("200000 100000\n"), Optional(2.0));
  EXPECT_THAT(ParseCpuMax("150000 100000"), Optional(1.5));
  EXPECT_EQ(ParseCpuMax("max 100000\n"), std::nullopt);
  for (const char* bad : {"", "\n", "200000", "a b", "1 0", "-1 100000", "1 2 3"}) {
    EXPECT_EQ(ParseCpuMax(bad), std::nullopt) << bad;
  }
}

TEST(CpuBudgetTest, ReadsTheQuotaOfCgroupV1) {
  EXPECT_THAT(ParseCfsQuota("400000\n", "100000\n"), Optional(4.0));
  EXPECT_EQ(ParseCfsQuota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(ParseCfsQuota("", ""), std::nullopt);
}

TEST(CpuBudgetTest, IsTheLeastLimitRoundedDownWithinOneAndSixtyFour) {
  const struct {
    int affinity;
    std::vector<double> quotas;
    int budget;
  } cases[] = {
      {8, {}, 8},    {8, {4.0}, 4}, {8, {4.0, 2.0, 6.0}, 2}, {2, {16.0}, 2},     {8, {1.5}, 1},
      {8, {0.2}, 1}, {0, {}, 1},    {256, {}, 64},           {256, {100.0}, 64}, {8, {2.999}, 2},
  };
  for (const auto& c : cases) EXPECT_EQ(CpuBudget(c.affinity, c.quotas), c.budget);
}

TEST(CpuBudgetTest, OfThisProcessIsWithinBounds) {
  EXPECT_GE(CpuBudgetOfThisProcess(), 1);
  EXPECT_LE(CpuBudgetOfThisProcess(), kMaxComputeThreads);
}

}  // namespace
}  // namespace phimap::testing
