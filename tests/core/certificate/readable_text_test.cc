#include <string>

#include "core/certificate/artifact_review.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(ReadableTextTest, WhatPeopleWriteIsReadable) {
  for (const char* text :
       {"", "f2(landmarks=500)", "two\nlines", "d ≥ (8/ε)(1/γ² + ln 1/δ)", "核", "\xf0\x9f\x8d\x8e",
        "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsReadableText(text)) << text;
  }
}

TEST(ReadableTextTest, ControlCharactersAreNot) {
  for (int c = 0; c < 0x20; ++c) {
    EXPECT_EQ(IsReadableText(std::string("a") + static_cast<char>(c)), c == '\n') << c;
  }
  EXPECT_FALSE(IsReadableText("\x7f"));
  for (int c = 0x80; c < 0xa0; ++c) {  // C1 control characters in UTF-8
    EXPECT_FALSE(IsReadableText(std::string("\xc2") + static_cast<char>(c))) << c;
  }
  EXPECT_FALSE(IsReadableText("\x1b[2J"));
}

TEST(ReadableTextTest, WhatTurnsTheDirectionOfWritingIsNot) {
  for (const char* text : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    EXPECT_FALSE(IsReadableText(std::string("prod") + text + "x"));
  }
  EXPECT_TRUE(IsReadableText("\u2065\u202f\u2029"));  // code points next to those above
}

TEST(ReadableTextTest, WhatIsNotUtf8IsNot) {
  for (const char* text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x20", "\xe0\x9f\xbf", "\xe2\x82",
        "\xe2\x28\xa1", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x8d",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "good\xff"}) {
    EXPECT_FALSE(IsReadableText(text));
  }
}

}  // namespace
}  // namespace phimap::testing
