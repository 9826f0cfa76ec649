#include "gmock/gmock.h"
#include "server/rpc/transport/connection_limits.h"

namespace phimap::testing {
namespace {

constexpr absl::Time kFirst = absl::UnixEpoch();

bool TakeAll(ResetAllowance& allowance, int count, absl::Time now) {
  bool all = true;
  for (int i = 0; i < count; ++i) all &= allowance.Take(now);
  return all;
}

TEST(ResetAllowanceTest, BurstIsAllowedAndOneMoreIsNot) {
  ResetAllowance allowance;
  EXPECT_TRUE(TakeAll(allowance, 2'000, kFirst));
  EXPECT_FALSE(allowance.Take(kFirst));
}

TEST(ResetAllowanceTest, SoManyASecondAreAllowedAfterTheBurst) {
  ResetAllowance allowance;
  EXPECT_TRUE(TakeAll(allowance, 2'000, kFirst));
  EXPECT_TRUE(TakeAll(allowance, 200, kFirst + absl::Seconds(1)));
  EXPECT_FALSE(allowance.Take(kFirst + absl::Seconds(1)));
}

TEST(ResetAllowanceTest, EachStreamThatWasAnsweredEarnsOneMore) {
  ResetAllowance allowance;
  EXPECT_TRUE(TakeAll(allowance, 2'000, kFirst));
  for (int i = 0; i < 300; ++i) allowance.Earn();
  EXPECT_TRUE(TakeAll(allowance, 300, kFirst));
  EXPECT_FALSE(allowance.Take(kFirst));
}

TEST(ResetAllowanceTest, NobodySavesMoreThanTheBurst) {
  ResetAllowance allowance;
  for (int i = 0; i < 5'000; ++i) allowance.Earn();
  EXPECT_TRUE(TakeAll(allowance, 1'000, kFirst));
  EXPECT_TRUE(TakeAll(allowance, 2'000, kFirst + absl::Hours(1)));
  EXPECT_FALSE(allowance.Take(kFirst + absl::Hours(1)));
}

}  // namespace
}  // namespace phimap::testing
