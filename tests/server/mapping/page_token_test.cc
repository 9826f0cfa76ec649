#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/mapping/request_fields.h"
#include "tests/support/matchers.h"

namespace phimap {
namespace {

TEST(PageTokenTest, ComesBackAsItWas) {
  for (const char* position : {"a", "letter-7", "12"}) {
    EXPECT_EQ(*DecodePageToken("mappings", EncodePageToken("mappings", position)), position);
  }
}

TEST(PageTokenTest, WhatWasNotHandedOutForTheListIsRefused) {
  std::string mangled = EncodePageToken("mappings", "letter");
  mangled[3] ^= 1;
  for (const std::string& token :
       {std::string("x"), std::string("letter"), std::string("!!"), std::string(1000, 'A'), mangled,
        EncodePageToken("versions/a", "letter"), EncodePageToken("mappings", "")}) {
    const auto decoded = DecodePageToken("mappings", token);
    ASSERT_FALSE(decoded.ok()) << token;
    EXPECT_EQ(testing::FieldOf(decoded.status()), "page_token");
  }
}

TEST(PageTokenTest, SizesHaveADefaultAndALimit) {
  EXPECT_EQ(*PageSize(0), 100);
  EXPECT_EQ(*PageSize(7), 7);
  EXPECT_EQ(*PageSize(5000), 1000);
  EXPECT_FALSE(PageSize(-1).ok());
}

}  // namespace
}  // namespace phimap
