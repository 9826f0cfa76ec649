#include "core/status/error.h"

#include "core/status/status_macros.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(ErrorTest, DetailComesBackAsItWasGiven) {
  const absl::Status status =
      MakeError(StatusCode::kUnavailable, "BUSY", "spec.landmarks", "try later",
                {{"limit", "8"}, {"empty", ""}, {"", "no key"}}, 1500);
  const std::optional<ErrorDetail> detail = DetailOf(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_THAT(status, IsError(StatusCode::kUnavailable, _, _, "spec.landmarks: try later"));
  EXPECT_EQ(detail->reason, "BUSY");
  EXPECT_EQ(detail->field, "spec.landmarks");
  EXPECT_EQ(detail->retry_delay_ms, 1500);
  EXPECT_EQ(detail->metadata,
            (std::map<std::string, std::string>{{"limit", "8"}, {"empty", ""}, {"", "no key"}}));
}

TEST(ErrorTest, MessageStandsAloneWithoutAField) {
  EXPECT_EQ(MakeError(StatusCode::kInternal, "X", "", "what").message(), "what");
}

TEST(ErrorTest, OtherStatusesHaveNoDetail) {
  EXPECT_FALSE(DetailOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(DetailOf(absl::InternalError("no payload")).has_value());
}

TEST(ErrorTest, PrefixGoesBeforeTheFieldAndKeepsEverythingElse) {
  const absl::Status status = WithFieldPrefix(
      MakeError(StatusCode::kInvalidArgument, "R", "landmarks", "a: b", {{"k", "v"}}, 7), "spec.");
  EXPECT_EQ(status.message(), "spec.landmarks: a: b");
  const std::optional<ErrorDetail> detail = DetailOf(status);
  EXPECT_EQ(detail->field, "spec.landmarks");
  EXPECT_EQ(detail->metadata.at("k"), "v");
  EXPECT_EQ(detail->retry_delay_ms, 7);
}

TEST(ErrorTest, PrefixLeavesStatusesWithoutAFieldAlone) {
  EXPECT_TRUE(WithFieldPrefix(absl::OkStatus(), "spec.").ok());
  const absl::Status status = MakeError(StatusCode::kAborted, "R", "", "m");
  EXPECT_EQ(WithFieldPrefix(status, "spec."), status);
}

// Metadata values quote texts from callers. Whatever bytes these contain, they must not end the
// program or be read as another key.
TEST(ErrorTest, AnyByteMayStandInFieldAndMetadata) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = "a" + std::string(2, static_cast<char>(byte)) + "3:b";
    const absl::Status status =
        MakeError(StatusCode::kInvalidArgument, "R", text, "m", {{text, text}, {"z", ""}});
    const std::optional<ErrorDetail> detail = DetailOf(status);
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->field, text);
    EXPECT_EQ(detail->metadata, (std::map<std::string, std::string>{{text, text}, {"z", ""}}));
    EXPECT_EQ(FieldOf(WithFieldPrefix(status, "p.")), "p." + text);
  }
}

TEST(ErrorTest, AnotherFieldTakesThePlaceOfTheFirstAndKeepsEverythingElse) {
  const absl::Status status = WithField(
      MakeError(StatusCode::kNotFound, "R", "reference", "a: b", {{"k", "v"}}, 7), "name");
  EXPECT_THAT(status, IsError(StatusCode::kNotFound, _, _, "name: a: b"));
  const std::optional<ErrorDetail> detail = DetailOf(status);
  EXPECT_EQ(detail->field, "name");
  EXPECT_EQ(detail->metadata.at("k"), "v");
  EXPECT_EQ(detail->retry_delay_ms, 7);
  const absl::Status bare = MakeError(StatusCode::kAborted, "R", "", "m");
  EXPECT_EQ(WithField(bare, "name"), bare);
}

TEST(ExcerptTest, WhatIsNotUtf8IsEscapedSoThatTheErrorIs) {
  EXPECT_EQ(Excerpt("a\xff"), "a\\xff");
  EXPECT_EQ(Excerpt("\xc3"), "\\xc3");                    // a character that is cut off
  EXPECT_EQ(Excerpt("\xc0\xaf"), "\\xc0\\xaf");           // an overlong slash
  EXPECT_EQ(Excerpt("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(Excerpt("\xe2\x82\xac"), "\xe2\x82\xac");     // a euro sign
  EXPECT_EQ(Excerpt("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
}

TEST(ExcerptTest, WhatACallerSentIsShownShortPrintableAndStillUtf8) {
  EXPECT_EQ(Quoted("x"), "\"x\"");
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("a\"\n\x01"), "\"a\\\"\\n\\x01\"");
  EXPECT_EQ(Quoted(std::string(100, 'a')), "\"" + std::string(100, 'a') + "\"");
  EXPECT_EQ(Quoted(std::string(101, 'a')), "\"" + std::string(100, 'a') + "…\"");
  // The hundredth byte is the first of the two bytes of "é".
  EXPECT_EQ(Quoted(std::string(99, 'a') + "ééé"), "\"" + std::string(99, 'a') + "…\"");
}

absl::StatusOr<int> Half(int x) {
  if (x % 2 != 0) return absl::InvalidArgumentError("odd");
  return x / 2;
}
absl::StatusOr<int> Quarter(int x) {
  PHIMAP_ASSIGN_OR_RETURN(const int half, Half(x));
  PHIMAP_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}
absl::Status Divisible(int x) {
  PHIMAP_RETURN_IF_ERROR(Quarter(x).status());
  return absl::OkStatus();
}

TEST(StatusMacrosTest, ReturnTheFirstErrorOrTheValue) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  EXPECT_TRUE(Divisible(4).ok());
  EXPECT_FALSE(Divisible(5).ok());
}

TEST(ErrorTest, TheProblemIsTheMessageWithoutTheRemedy) {
  const absl::Status problem = MakeError(StatusCode::kFailedPrecondition, "TOO_BIG", "spec.rows",
                                         "7 rows; one is \"a; b\"", {{"actual", "7"}});
  EXPECT_EQ(ProblemOf(problem), problem.message());
  const absl::Status error = WithRemedy(problem, "send fewer; or shorter ones");
  EXPECT_EQ(error.code(), problem.code());
  EXPECT_EQ(error.message(), "spec.rows: 7 rows; one is \"a; b\"; send fewer; or shorter ones");
  EXPECT_EQ(ProblemOf(error), problem.message());
  EXPECT_EQ(ReasonOf(error), "TOO_BIG");
  EXPECT_EQ(DetailOf(error)->metadata.at("actual"), "7");
}

}  // namespace
}  // namespace phimap::testing
