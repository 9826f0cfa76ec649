#include "server/calls/binary_metadata.h"

#include <gtest/gtest.h>

namespace phimap {
namespace {

// The examples of RFC 4648, and the two digits that other alphabets have in the place of + and /.
TEST(BinaryMetadataTest, EncodesWithoutPadding) {
  EXPECT_EQ(EncodeBinaryMetadata(""), "");
  EXPECT_EQ(EncodeBinaryMetadata("f"), "Zg");
  EXPECT_EQ(EncodeBinaryMetadata("fo"), "Zm8");
  EXPECT_EQ(EncodeBinaryMetadata("foo"), "Zm9v");
  EXPECT_EQ(EncodeBinaryMetadata(absl::string_view("\xfb\xff\0", 3)), "+/8A");
}

}  // namespace
}  // namespace phimap
