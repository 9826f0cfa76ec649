#include "server/admission/caller_rates.h"

#include <gtest/gtest.h>

#include "core/status/error.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

RateLimits LimitsOf(Rated kind, int64_t limit) {
  RateLimits limits;
  limits.of[static_cast<size_t>(kind)] = limit;
  return limits;
}

// How many single takes are admitted within `time` by a caller who tries every millisecond.
int Admitted(CallerRates& rates, Rated kind, absl::Time from, absl::Duration time) {
  int admitted = 0;
  for (absl::Duration at; at < time; at += absl::Milliseconds(1)) {
    if (rates.Take(kind, 1, from + at).ok()) ++admitted;
  }
  return admitted;
}

TEST(CallerRatesTest, ACallerGetsItsRateAndWhatItSavedUp) {
  CallerRates rates(LimitsOf(Rated::kCalls, 50));
  // One second's worth was saved up, and 9.999 seconds' worth comes until the last try.
  EXPECT_EQ(Admitted(rates, Rated::kCalls, kStart, absl::Seconds(10)), 50 + 499);
  // After a pause of an hour, no more than a second's worth is saved up.
  EXPECT_EQ(Admitted(rates, Rated::kCalls, kStart + absl::Hours(1), absl::Seconds(1)), 50 + 49);
}

TEST(CallerRatesTest, ARefusalSaysTheLimitAndWhenToComeBack) {
  CallerRates rates(LimitsOf(Rated::kCalls, 2));
  ASSERT_TRUE(rates.Take(Rated::kCalls, 1, kStart).ok());
  ASSERT_TRUE(rates.Take(Rated::kCalls, 1, kStart).ok());
  const absl::Status refused = rates.Take(Rated::kCalls, 1, kStart);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  const ErrorDetail detail = DetailOf(refused).value();
  EXPECT_EQ(detail.reason, "CALLER_RATE_REACHED");
  EXPECT_EQ(detail.metadata.at("limit"), "2");
  EXPECT_EQ(detail.metadata.at("limited"), "calls");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("2 calls a second"));
  const absl::Duration wait = absl::Milliseconds(detail.retry_delay_ms);
  EXPECT_FALSE(rates.Take(Rated::kCalls, 1, kStart + wait - absl::Milliseconds(3)).ok());
  EXPECT_TRUE(rates.Take(Rated::kCalls, 1, kStart + wait).ok());
}

TEST(CallerRatesTest, ALargeRequestIsAdmittedOnceAndPaidOff) {
  CallerRates rates(LimitsOf(Rated::kRows, 100));
  EXPECT_TRUE(rates.Take(Rated::kRows, 1000, kStart).ok());
  // Ten seconds' worth was taken, of which one was saved up.
  EXPECT_FALSE(rates.Take(Rated::kRows, 1, kStart + absl::Seconds(9)).ok());
  EXPECT_TRUE(rates.Take(Rated::kRows, 1, kStart + absl::Seconds(9.02)).ok());
}

TEST(CallerRatesTest, BuildsCountByTheHour) {
  CallerRates rates(LimitsOf(Rated::kBuilds, 3));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rates.Take(Rated::kBuilds, 1, kStart).ok());
  EXPECT_FALSE(rates.Take(Rated::kBuilds, 1, kStart + absl::Minutes(19)).ok());
  EXPECT_TRUE(rates.Take(Rated::kBuilds, 1, kStart + absl::Minutes(20)).ok());
  // Other kinds have no limit.
  EXPECT_EQ(Admitted(rates, Rated::kCalls, kStart, absl::Seconds(1)), 1000);
}

}  // namespace
}  // namespace phimap::testing
