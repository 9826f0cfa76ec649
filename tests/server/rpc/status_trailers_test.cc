#include "server/rpc/status_trailers.h"

#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "core/status/error.h"
#include "phimap/rpc/error_details.pb.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

rpc::Status DetailsOf(const StatusTrailers& trailers) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(trailers.details_bin, &bytes));
  rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(bytes));
  return details;
}

TEST(StatusTrailersTest, OkIsZeroAndNothingElse) {
  const StatusTrailers trailers = TrailersOf(absl::OkStatus());
  EXPECT_EQ(trailers.code, 0);
  EXPECT_EQ(trailers.message, "");
  EXPECT_EQ(trailers.details_bin, "");
}

TEST(StatusTrailersTest, EveryCanonicalCodeKeepsItsNumber) {
  for (int code = 1; code <= 16; ++code) {
    const StatusTrailers trailers = TrailersOf(absl::Status(static_cast<Code>(code), "m"));
    EXPECT_EQ(trailers.code, code);
    EXPECT_EQ(trailers.message, "m");
    EXPECT_EQ(trailers.details_bin, "");
  }
}

TEST(StatusTrailersTest, MessageIsPercentEncodedAndDetailsAreBase64) {
  const StatusTrailers trailers = TrailersOf(
      MakeError(Code::kInvalidArgument, "COLUMNS_MISMATCH", "rows", "100 % of 15 columns: ä"));
  EXPECT_EQ(trailers.message, "rows: 100 %25 of 15 columns: %C3%A4");
  EXPECT_EQ(trailers.details_bin.find('='), std::string::npos);
  const rpc::Status details = DetailsOf(trailers);
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), "rows: 100 % of 15 columns: ä");
  EXPECT_EQ(details.details_size(), 2);
}

TEST(StatusTrailersTest, EveryErrorFitsInto7KiB) {
  for (const char* character : {"a", "%", "ä", "☺", "😈", "\n", "\x80"}) {
    SCOPED_TRACE(character);
    std::string text;
    while (text.size() < 5'000) text += character;
    std::map<std::string, std::string> metadata;
    for (int i = 0; i < 50; ++i) metadata[std::to_string(i)] = text;
    const StatusTrailers trailers =
        TrailersOf(MakeError(Code::kInternal, "R", "field", text, metadata));
    EXPECT_LE(trailers.message.size(), 3072);
    EXPECT_LE(trailers.details_bin.size(), 4096);
    EXPECT_THAT(trailers.message, EndsWith("%E2%80%A6"));  // the ellipsis
  }
}

TEST(StatusTrailersTest, MessageThatFitsIsWhole) {
  // 512 two-byte characters, which are 1,024 bytes, take 3,072 bytes once percent-encoded.
  std::string text;
  for (int i = 0; i < 512; ++i) text += "ä";
  EXPECT_EQ(TrailersOf(absl::InternalError(text)).message.size(), 3'072);
  EXPECT_EQ(TrailersOf(absl::InternalError(std::string(2'048, 'a'))).message,
            std::string(2'048, 'a'));
  EXPECT_LT(TrailersOf(absl::InternalError(text + "ä")).message.size(), 3'072);
}

}  // namespace
}  // namespace phimap::testing
