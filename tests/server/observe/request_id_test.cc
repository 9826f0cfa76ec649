#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/observe/log.h"
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
