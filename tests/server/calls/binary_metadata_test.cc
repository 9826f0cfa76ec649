#include "server/calls/binary_metadata.h"

#include <gmock/gmock.h>

namespace phimap {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Decoded(absl::string_view value) {
  std::vector<std::string> values;
  EXPECT_TRUE(DecodeBinaryMetadata(value, values)) << value;
  return values;
}

// The examples of RFC 4648.
TEST(BinaryMetadataTest, PaddingIsOptional) {
  EXPECT_THAT(Decoded("Zg=="), ElementsAre("f"));
  EXPECT_THAT(Decoded("Zg"), ElementsAre("f"));
  EXPECT_THAT(Decoded("Zm8="), ElementsAre("fo"));
  EXPECT_THAT(Decoded("Zm8"), ElementsAre("fo"));
  EXPECT_THAT(Decoded("Zm9v"), ElementsAre("foo"));
  EXPECT_THAT(Decoded("+/8A"), ElementsAre(std::string("\xfb\xff\0", 3)));
}

TEST(BinaryMetadataTest, CommasJoinSeveralValues) {
  EXPECT_THAT(Decoded("Zg==,Zm8,Zm9v"), ElementsAre("f", "fo", "foo"));
  EXPECT_THAT(Decoded("Zg, Zm8"), ElementsAre("f", "fo"));
  EXPECT_THAT(Decoded("Zg,,Zm8,"), ElementsAre("f", "", "fo", ""));
  EXPECT_THAT(Decoded(""), ElementsAre(""));
}

TEST(BinaryMetadataTest, AppendsToWhatIsThere) {
  std::vector<std::string> values = {"first"};
  ASSERT_TRUE(DecodeBinaryMetadata("Zg", values));
  EXPECT_THAT(values, ElementsAre("first", "f"));
}

TEST(BinaryMetadataTest, WhatIsNotBase64LeavesTheValues) {
  for (const char* value : {"Z", "Zm9vY", "Zg=", "Zg===", "Zm8==", "Zm9v=", "=", "Zg==Zg==", "Z g",
                            "Z\ng", "Zg..", "Z-_g", "Zg==,!", "Zm9v,Z", "Zm\x80v"}) {
    std::vector<std::string> values = {"first"};
    EXPECT_FALSE(DecodeBinaryMetadata(value, values)) << '"' << value << '"';
    EXPECT_THAT(values, ElementsAre("first")) << '"' << value << '"';
  }
  std::vector<std::string> values;
  EXPECT_FALSE(DecodeBinaryMetadata(absl::string_view("Zg\0", 3), values));
}

TEST(BinaryMetadataTest, EncodesWithoutPadding) {
  EXPECT_EQ(EncodeBinaryMetadata(""), "");
  EXPECT_EQ(EncodeBinaryMetadata("f"), "Zg");
  EXPECT_EQ(EncodeBinaryMetadata("fo"), "Zm8");
  EXPECT_EQ(EncodeBinaryMetadata("foo"), "Zm9v");
  EXPECT_EQ(EncodeBinaryMetadata(absl::string_view("\xfb\xff\0", 3)), "+/8A");
}

}  // namespace
}  // namespace phimap
