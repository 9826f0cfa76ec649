#include "server/observe/trace_parent.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// The example of the standard.
constexpr absl::string_view kTraceId = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr absl::string_view kParentId = "00f067aa0ba902b7";
constexpr absl::string_view kExample = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParentTest, ReadsTheExampleOfTheStandard) {
  const std::optional<TraceParent> parsed = TraceParent::Parse(kExample);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->trace_id[0], 0x4b);
  EXPECT_EQ(parsed->trace_id[15], 0x36);
  EXPECT_EQ(parsed->parent_id[1], 0xf0);
  EXPECT_TRUE(parsed->sampled());
  EXPECT_EQ(parsed->TraceId(), kTraceId);
  EXPECT_EQ(parsed->ToString(), kExample);
}

TEST(TraceParentTest, KeepsOnlyTheFlagsThatAreDefined) {
  const struct {
    const char* sent;
    const char* kept;
    bool sampled;
  } cases[] = {{"00", "00", false}, {"01", "01", true}, {"02", "02", false}, {"ff", "03", true}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.sent);
    const std::optional<TraceParent> parsed =
        TraceParent::Parse(absl::StrCat("00-", kTraceId, "-", kParentId, "-", c.sent));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->sampled(), c.sampled);
    EXPECT_EQ(parsed->ToString(), absl::StrCat("00-", kTraceId, "-", kParentId, "-", c.kept));
  }
}

TEST(TraceParentTest, ReadsLaterVersionsAsFarAsItKnowsThem) {
  for (const absl::string_view end : {"", "-", "-more"}) {
    SCOPED_TRACE(end);
    const std::optional<TraceParent> parsed =
        TraceParent::Parse(absl::StrCat("cc-", kTraceId, "-", kParentId, "-01", end));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->ToString(), kExample);
  }
}

TEST(TraceParentTest, RefusesEverythingElse) {
  const std::string cases[] = {
      "",
      "00",
      std::string(kExample.substr(0, kExample.size() - 1)),
      absl::StrCat(kExample, "0"),
      absl::StrCat(kExample, "-"),
      absl::StrCat(" ", kExample.substr(0, kExample.size() - 1)),
      absl::StrCat("ff-", kTraceId, "-", kParentId, "-01"),
      absl::StrCat("cc-", kTraceId, "-", kParentId, "-01x"),
      absl::StrCat("0g-", kTraceId, "-", kParentId, "-01"),
      absl::StrCat("00_", kTraceId, "-", kParentId, "-01"),
      absl::StrCat("00-", kTraceId, "_", kParentId, "-01"),
      absl::StrCat("00-", kTraceId, "-", kParentId, "_01"),
      absl::StrCat("00-", kTraceId, "-", kParentId, "-0G"),
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
  };
  for (const std::string& text : cases) {
    EXPECT_EQ(TraceParent::Parse(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(TraceParentTest, NoByteOfTheExampleMayBeNonsense) {
  for (size_t at = 0; at < kExample.size(); ++at) {
    for (const char c : {'\0', ' ', 'z', '\x80'}) {
      std::string text(kExample);
      text[at] = c;
      EXPECT_EQ(TraceParent::Parse(text), std::nullopt) << "'" << text << "'";
    }
  }
}

}  // namespace
}  // namespace phimap::testing
