#include "server/observe/log.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(LogTest, OneLineHoldsTimeLevelEventAndFieldsInOrder) {
  EXPECT_EQ(FormatLogLine(absl::FromUnixMillis(1'500), LogLevel::kInfo, "build_done",
                          {{"mapping", "letter"}, {"rows", 20000}}),
            "1970-01-01T00:00:01.500Z INFO build_done mapping=letter rows=20000\n");
}

// RFC 8259: a number has no quotation marks, and NaN and infinity are none.
TEST(LogTest, AFieldIsANumberATruthOrATextAndWithoutAValueItIsLeftOut) {
  const struct {
    LogValue value;
    const char* json;
    const char* text;
  } cases[] = {
      {20000, ",\"k\":20000", " k=20000"},
      {int64_t{9'007'199'254'740'993}, ",\"k\":9007199254740993", " k=9007199254740993"},
      {size_t{0}, ",\"k\":0", " k=0"},
      {-5, ",\"k\":-5", " k=-5"},
      {0.25, ",\"k\":0.25", " k=0.25"},
      {2.5e-5, ",\"k\":2.5e-05", " k=2.5e-05"},
      {true, ",\"k\":true", " k=true"},
      {false, ",\"k\":false", " k=false"},
      {"7", ",\"k\":\"7\"", " k=7"},
      {std::optional<int64_t>(7), ",\"k\":7", " k=7"},
      {std::optional<int64_t>(), "", ""},
      {std::nullopt, "", ""},
      {"", "", ""},
      {std::string(), "", ""},
      {absl::string_view(), "", ""},
      {std::numeric_limits<double>::infinity(), "", ""},
      {std::numeric_limits<double>::quiet_NaN(), "", ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(FormatLogLine(absl::UnixEpoch(), LogLevel::kInfo, "e", {{"k", c.value}, {"l", 1}},
                            LogFormat::kJson),
              absl::StrCat("{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"INFO\","
                           "\"event\":\"e\"",
                           c.json, ",\"l\":1}\n"));
    EXPECT_EQ(FormatLogLine(absl::UnixEpoch(), LogLevel::kInfo, "e", {{"k", c.value}, {"l", 1}}),
              absl::StrCat("1970-01-01T00:00:00.000Z INFO e", c.text, " l=1\n"));
  }
}

TEST(LogTest, ValuesThatCouldBreakTheLineAreQuotedAndEscaped) {
  const struct {
    const char* value;
    const char* shown;
  } cases[] = {
      {"two words", "\"two words\""},
      {"a\nlevel=ERROR", "\"a\\nlevel=ERROR\""},
      {"say \"hi\"", "\"say \\\"hi\\\"\""},
      {"127.0.0.1:80", "127.0.0.1:80"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(FormatLogLine(absl::UnixEpoch(), LogLevel::kError, "e", {{"k", c.value}}),
                EndsWith(std::string(" ERROR e k=") + c.shown + "\n"));
  }
}

TEST(LogTest, JsonIsOneObjectALineWithTimeLevelAndEventFirst) {
  EXPECT_EQ(FormatLogLine(absl::FromUnixMillis(1'500), LogLevel::kWarning, "build_ended",
                          {{"mapping", "letter"}, {"rows", 20000}}, LogFormat::kJson),
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"level\":\"WARNING\",\"event\":"
            "\"build_ended\",\"mapping\":\"letter\",\"rows\":20000}\n");
}

// RFC 8259 requires that the quotation mark, the backslash and U+0000 to U+001F are escaped, and
// that text is UTF-8.
TEST(LogTest, JsonValuesThatCouldBreakTheObjectAreEscaped) {
  const struct {
    std::string value;
    const char* shown;
  } cases[] = {
      {"say \"hi\" \\o/", "say \\\"hi\\\" \\\\o/"},
      {"a\nb\x1f", "a\\u000ab\\u001f"},
      {std::string("\0", 1), "\\u0000"},
      {"\xC3\xA9\xF0\x9F\x98\x80", "\xC3\xA9\xF0\x9F\x98\x80"},
      {"\xC3(", "\xEF\xBF\xBD("},
      {"a\xFF", "a\xEF\xBF\xBD"},
      {"\xE2\x82", "\xEF\xBF\xBD\xEF\xBF\xBD"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        FormatLogLine(absl::UnixEpoch(), LogLevel::kInfo, "e", {{"k", c.value}}, LogFormat::kJson),
        EndsWith(std::string(",\"k\":\"") + c.shown + "\"}\n"));
  }
}

TEST(LogTest, LinesBelowTheLevelAreNotWritten) {
  std::vector<std::string> lines;
  const Logger logger(LogLevel::kWarning,
                      [&](absl::string_view line) { lines.emplace_back(line); });
  logger.Log(LogLevel::kDebug, "debug", {});
  logger.Log(LogLevel::kInfo, "info", {});
  logger.Log(LogLevel::kWarning, "warning", {});
  logger.Log(LogLevel::kError, "error", {});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("WARNING warning"), HasSubstr("ERROR error")));
}

TEST(LogTest, TheLevelCanChangeAtAnyTime) {
  std::vector<std::string> lines;
  Logger logger(LogLevel::kOff, [&](absl::string_view line) { lines.emplace_back(line); });
  logger.Log(LogLevel::kError, "first", {});
  logger.SetLevel(LogLevel::kDebug);
  logger.Log(LogLevel::kDebug, "second", {});
  logger.SetLevel(LogLevel::kError);
  logger.Log(LogLevel::kWarning, "third", {});
  logger.Log(LogLevel::kError, "fourth", {});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("DEBUG second"), HasSubstr("ERROR fourth")));
}

TEST(LogTest, OneInSoManyCallsIsSampled) {
  Logger logger(LogLevel::kOff);
  const auto samples = [&logger](int calls) {
    int sampled = 0;
    for (int i = 0; i < calls; ++i) sampled += logger.SamplesCall() ? 1 : 0;
    return sampled;
  };
  EXPECT_EQ(samples(1000), 0);
  logger.SetCallSampling(100);
  EXPECT_EQ(samples(1000), 10);
  logger.SetCallSampling(1);
  EXPECT_EQ(samples(1000), 1000);
  logger.SetCallSampling(0);
  EXPECT_EQ(samples(1000), 0);
}

// The messages are what MakeError makes of errors that the server has.
TEST(LogTest, AnErrorIsToldWithoutWhatTheClientSent) {
  using Code = absl::StatusCode;
  const struct {
    absl::Status error;
    const char* message;
  } cases[] = {
      {absl::OkStatus(), ""},
      {absl::InternalError("disk \"a\" on fire"), "disk \"a\" on fire"},
      {MakeError(Code::kResourceExhausted, reason::kQueueFull, "", "the queue \"q\" is full"),
       "the queue \"q\" is full"},
      {MakeError(Code::kNotFound, reason::kMappingNotFound, "reference", "no mapping \"letters\""),
       "reference: no mapping \"letters\""},
      {MakeError(Code::kPermissionDenied, reason::kRoleTooLow, "", "\"eve\" is a reader"),
       "\"eve\" is a reader"},
      {MakeError(Code::kInvalidArgument, reason::kColumnsMismatch, "examples.dense.columns",
                 "expected 16 columns, got 15"),
       "examples.dense.columns: expected 16 columns, got 15"},
      {MakeError(Code::kInvalidArgument, reason::kLabelInvalid, "examples.labels",
                 absl::StrCat("expected a number, got ", Quoted("Smith \"Bob\" J."), " in row 7")),
       "examples.labels: expected a number, got \"…\" in row 7"},
      // A field makes it an error about the request.
      {MakeError(Code::kResourceExhausted, reason::kMessageTooLarge, "f", "got \"Smith\""),
       "f: got \"…\""},
      // Cut by somebody, in the middle of a quotation.
      {absl::InvalidArgumentError("got \"Smith"), "got \""},
      {MakeError(Code::kInvalidArgument, reason::kValueNotFinite, "rows", "got inf"), ""},
      {MakeError(Code::kInvalidArgument, reason::kRequestMalformed, "rows", "got 'Smith'"), ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.error.ToString());
    EXPECT_EQ(ErrorForLog(c.error).message, c.message);
  }
}

TEST(LogTest, AnErrorHasItsCodeReasonAndFieldIfItHasThem) {
  const LoggedError bare = ErrorForLog(absl::InternalError("m"));
  EXPECT_EQ(bare.code, "INTERNAL");
  EXPECT_EQ(bare.reason, "");
  EXPECT_EQ(bare.field, "");
  const LoggedError full =
      ErrorForLog(MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldInvalid, "a.b", "m"));
  EXPECT_EQ(full.code, "INVALID_ARGUMENT");
  EXPECT_EQ(full.reason, "FIELD_INVALID");
  EXPECT_EQ(full.field, "a.b");
  EXPECT_EQ(ErrorForLog(absl::OkStatus()).code, "OK");
}

TEST(LogTest, ALoggerThatWritesNothingDropsNothing) {
  const Logger logger(LogLevel::kOff);
  logger.Log(LogLevel::kError, "error", {});
  EXPECT_EQ(logger.drops(), LogDrops());
}

TEST(LogTest, UnknownFormatIsRefusedWithTheKnownOnes) {
  EXPECT_EQ(*ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_THAT(std::string(ParseLogFormat("xml").status().message()),
              AllOf(HasSubstr("json"), HasSubstr("xml")));
}

TEST(LogTest, UnknownLevelIsRefusedWithTheKnownOnes) {
  EXPECT_EQ(*ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_THAT(std::string(ParseLogLevel("loud").status().message()),
              AllOf(HasSubstr("warning"), HasSubstr("loud")));
}

}  // namespace
}  // namespace phimap::testing
