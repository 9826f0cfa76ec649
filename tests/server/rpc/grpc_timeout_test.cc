#include <gmock/gmock.h>

#include <optional>

#include "server/rpc/metadata.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(GrpcTimeoutTest, EachUnitHasItsLetter) {
  EXPECT_THAT(ParseGrpcTimeout("3H"), Optional(absl::Seconds(10'800)));
  EXPECT_THAT(ParseGrpcTimeout("3M"), Optional(absl::Seconds(180)));
  EXPECT_THAT(ParseGrpcTimeout("3S"), Optional(absl::Seconds(3)));
  EXPECT_THAT(ParseGrpcTimeout("3m"), Optional(absl::Seconds(0.003)));
  EXPECT_THAT(ParseGrpcTimeout("3u"), Optional(absl::Nanoseconds(3'000)));
  EXPECT_THAT(ParseGrpcTimeout("3n"), Optional(absl::Nanoseconds(3)));
}

TEST(GrpcTimeoutTest, EightDigitsAreTheMost) {
  EXPECT_THAT(ParseGrpcTimeout("99999999H"), Optional(absl::Seconds(359'999'996'400)));
  EXPECT_THAT(ParseGrpcTimeout("00000001S"), Optional(absl::Seconds(1)));
  EXPECT_EQ(ParseGrpcTimeout("100000000n"), std::nullopt);
  EXPECT_EQ(ParseGrpcTimeout("000000001S"), std::nullopt);
}

TEST(GrpcTimeoutTest, ZeroIsATimeout) {
  EXPECT_THAT(ParseGrpcTimeout("0n"), Optional(absl::ZeroDuration()));
}

TEST(GrpcTimeoutTest, AnythingElseIsMalformed) {
  for (const char* value : {"", "S", "1", "12", "1s", "1h", "-1S", "+1S", " 1S", "1S ", "1 S",
                            "1.5S", "0x1S", "1SS", "1S1", "S1", "\xB9S"}) {
    EXPECT_EQ(ParseGrpcTimeout(value), std::nullopt) << '"' << value << '"';
  }
  EXPECT_EQ(ParseGrpcTimeout(absl::string_view("1\0S", 3)), std::nullopt);
}

}  // namespace
}  // namespace phimap::testing
