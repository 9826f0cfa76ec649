#include "server/observe/log.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(LogTest, OneLineHoldsTimeLevelEventAndFieldsInOrder) {
  EXPECT_EQ(FormatLogLine(absl::FromUnixMillis(1'500), LogLevel::kInfo, "build_done",
                          {{"mapping", "letter"}, {"rows", "20000"}}),
            "1970-01-01T00:00:01.500Z INFO build_done mapping=letter rows=20000\n");
}

TEST(LogTest, ValuesThatCouldBreakTheLineAreQuotedAndEscaped) {
  const struct {
    const char* value;
    const char* shown;
  } cases[] = {
      {"", "\"\""},
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
                          {{"mapping", "letter"}, {"rows", "20000"}}, LogFormat::kJson),
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"level\":\"WARNING\",\"event\":"
            "\"build_ended\",\"mapping\":\"letter\",\"rows\":\"20000\"}\n");
}

// RFC 8259 requires that the quotation mark, the backslash and U+0000 to U+001F are escaped, and
// that text is UTF-8.
TEST(LogTest, JsonValuesThatCouldBreakTheObjectAreEscaped) {
  const struct {
    std::string value;
    const char* shown;
  } cases[] = {
      {"", ""},
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
