#include <gtest/gtest.h>

#include "server/rpc/metadata.h"

namespace phimap::testing {
namespace {

// Checks the examples of RFC 4648, and one whose encoding contains + and /. Other base64 alphabets
// use other characters in place of these.
TEST(BinaryMetadataTest, EncodesWithoutPadding) {
  EXPECT_EQ(EncodeBinaryMetadata(""), "");
  EXPECT_EQ(EncodeBinaryMetadata("f"), "Zg");
  EXPECT_EQ(EncodeBinaryMetadata("fo"), "Zm8");
  EXPECT_EQ(EncodeBinaryMetadata("foo"), "Zm9v");
  EXPECT_EQ(EncodeBinaryMetadata(absl::string_view("\xfb\xff\0", 3)), "+/8A");
}

}  // namespace
}  // namespace phimap::testing
