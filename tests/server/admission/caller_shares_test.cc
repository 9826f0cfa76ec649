#include "server/admission/caller_shares.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(CallerSharesTest, CallsOfACallerAreLimitedAndHaveOneUse) {
  CallerShares shares(2);
  std::optional<CallerShares::Share> first = shares.Take("token");
  const std::optional<CallerShares::Share> second = shares.Take("token", /*administers=*/true);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(first->use(), second->use());
  EXPECT_TRUE(first->use()->administers);
  EXPECT_FALSE(shares.Take("token").has_value());
  EXPECT_NE(shares.Take("other")->use(), first->use());
  first.reset();
  EXPECT_TRUE(shares.Take("token").has_value());
}

TEST(CallerSharesTest, ANewLimitIsInForceForTheNextCallAndEndsNone) {
  CallerShares shares(1);
  std::optional<CallerShares::Share> first = shares.Take("token");
  shares.SetMaxCalls(2);
  const std::optional<CallerShares::Share> second = shares.Take("token");
  EXPECT_TRUE(second.has_value());
  shares.SetMaxCalls(1);
  first.reset();
  EXPECT_FALSE(shares.Take("token").has_value());
}

TEST(CallerSharesTest, AHostIsAnotherCallerThanATokenAndIsNotLimited) {
  CallerShares shares(1);
  const std::optional<CallerShares::Share> token = shares.Take("10.0.0.1");
  const CallerShares::Share one = shares.TakeOfHost("10.0.0.1");
  const CallerShares::Share two = shares.TakeOfHost("10.0.0.1");
  EXPECT_EQ(one.use(), two.use());
  EXPECT_NE(one.use(), token->use());
  EXPECT_EQ(shares.TakeOfHost("").use(), nullptr);
}

TEST(CallerSharesTest, ACallerThatReturnsIsTheSame) {
  CallerShares shares(1);
  const CallerUse* const first = shares.TakeOfHost("10.0.0.1").use().get();
  const CallerPointer other = std::make_shared<CallerUse>();
  EXPECT_EQ(shares.TakeOfHost("10.0.0.1").use().get(), first);
}

// What a caller holds may live longer than its calls.
TEST(CallerSharesTest, AUseIsKnownAgainWhileSomethingIsHeldHoweverManyCallersCome) {
  CallerShares shares(1);
  const CallerPointer held = shares.Take("token")->use();
  for (int i = 0; i < 1000; ++i) shares.Take(absl::StrCat("caller ", i));
  EXPECT_EQ(shares.Take("token")->use(), held);
}

}  // namespace
}  // namespace phimap::testing
