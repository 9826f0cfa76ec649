#include <gtest/gtest.h>

#include "server/rpc/metadata.h"

namespace phimap::testing {
namespace {

TEST(PercentEncodingTest, PrintableAsciiStandsForItself) {
  constexpr char kPrintable[] =
      "!\"#$&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abc xyz{|}~";
  EXPECT_EQ(PercentEncode(kPrintable), kPrintable);
  EXPECT_EQ(PercentEncode(""), "");
}

TEST(PercentEncodingTest, EverythingElseIsTwoHexadecimalDigits) {
  EXPECT_EQ(PercentEncode("100%"), "100%25");
  EXPECT_EQ(PercentEncode("%41"), "%2541");
  EXPECT_EQ(PercentEncode("a\r\nb\tc\x7f"), "a%0D%0Ab%09c%7F");
  EXPECT_EQ(PercentEncode(absl::string_view("\0x", 2)), "%00x");
}

// The text comes from gRPC's interop test "special_status_message".
TEST(PercentEncodingTest, CharactersAreTheirUtf8Bytes) {
  EXPECT_EQ(PercentEncode("\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"),
            "%09%0Atest with whitespace%0D%0Aand Unicode BMP %E2%98%BA and non-BMP "
            "%F0%9F%98%88%09%0A");
}

TEST(PercentEncodingTest, SpacesSurviveAtTheEndsOfTheHeader) {
  EXPECT_EQ(PercentEncode(" a b "), "%20a b%20");
  EXPECT_EQ(PercentEncode(" "), "%20");
}

}  // namespace
}  // namespace phimap::testing
