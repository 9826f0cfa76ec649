#include "core/status/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phimap {
namespace {

TEST(WordsTest, ACountHasItsNounInTheNumberThatItAsksFor) {
  EXPECT_EQ(CountOf(1, "row"), "1 row");
  EXPECT_EQ(CountOf(0, "row"), "0 rows");
  EXPECT_EQ(CountOf(20000, "row"), "20000 rows");
  EXPECT_EQ(CountOf(-1, "row"), "-1 rows");
  EXPECT_EQ(LongCountOf(20000, "row"), "20,000 rows");
  EXPECT_EQ(LongCountOf(1, "point"), "1 point");
}

TEST(WordsTest, PluralsAreTheRegularOnesOfEnglish) {
  const struct {
    const char* one;
    const char* many;
  } nouns[] = {{"row", "rows"},      {"class", "classes"},
               {"alias", "aliases"}, {"entry", "entries"},
               {"day", "days"},      {"box", "boxes"},
               {"y", "ys"},          {"held-out row", "held-out rows"}};
  for (const auto& noun : nouns) {
    EXPECT_EQ(NounFor(1, noun.one), noun.one);
    EXPECT_EQ(NounFor(2, noun.one), noun.many);
  }
}

TEST(WordsTest, NumbersAreWrittenAsPeopleReadThem) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1'234'567), "1,234,567");
  EXPECT_EQ(WithThousands(-1234), "-1,234");
  EXPECT_EQ(WithThousands(-123), "-123");
  EXPECT_EQ(SizeText(1), "1 byte");
  EXPECT_EQ(SizeText(17), "17 bytes");
  EXPECT_EQ(SizeText(1'258'291), "1.2 MiB");
}

}  // namespace
}  // namespace phimap
