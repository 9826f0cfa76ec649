#include "server/observe/request_id.h"

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(RequestIdTest, IsSixteenHexadecimalDigitsAndStays) {
  const RequestId id;
  const std::string text = id.Text();
  EXPECT_EQ(text.size(), 16);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << text;
  EXPECT_EQ(id.Text(), text);
}

TEST(RequestIdTest, IsTheCallersIfItSentOne) {
  const RequestId own;
  EXPECT_FALSE(own.from_caller());
  EXPECT_EQ(own.TraceId(), "");
  const RequestId callers(CallerIds{.request_id = "order 66", .trace_parent = std::nullopt});
  EXPECT_TRUE(callers.from_caller());
  EXPECT_EQ(callers.Text(), "order 66");
  const RequestId traced(CallerIds{.request_id = "",
                                   .trace_parent = TraceParent::Parse(
                                       "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")});
  EXPECT_FALSE(traced.from_caller());
  EXPECT_EQ(traced.Text().size(), 16);
  EXPECT_EQ(traced.TraceId(), "4bf92f3577b34da6a3ce929d0e0e4736");
}

TEST(RequestIdTest, OfACallerHasUpTo128PrintableCharacters) {
  for (const std::string& text :
       {std::string("7"), std::string("a b"), std::string("~!{}\"\\"), std::string(128, 'x')}) {
    EXPECT_TRUE(IsRequestId(text)) << text;
  }
  for (const std::string& text :
       {std::string(), std::string(129, 'x'), std::string(" a"), std::string("a "),
        std::string("a\tb"), std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f"),
        std::string("\xc3\xa9")}) {
    EXPECT_FALSE(IsRequestId(text)) << text;
  }
}

TEST(RequestIdTest, NoTwoAreEqual) {
  std::set<std::string> texts;
  for (int i = 0; i < 10'000; ++i) texts.insert(RequestId().Text());
  EXPECT_EQ(texts.size(), 10'000);
}

TEST(RequestIdTest, ThreadsThatAskAtOnceGetTheSame) {
  for (int round = 0; round < 200; ++round) {
    const RequestId id;
    std::vector<std::string> texts(4);
    std::vector<std::thread> threads;
    threads.reserve(texts.size());
    for (std::string& text : texts) threads.emplace_back([&id, &text] { text = id.Text(); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(texts, Each(id.Text()));
  }
}

}  // namespace
}  // namespace phimap::testing
