#include "server/store/sha256.h"

#include <gtest/gtest.h>

namespace phimap::testing {
namespace {

// The test vectors are those of FIPS 180-2, appendix B, except that the one for the empty string is
// one of NIST's test vectors.
TEST(Sha256Test, EqualsThePublishedVectors) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, NothingButADigestIsADigest) {
  const std::string digest = Sha256Hex("abc");
  EXPECT_TRUE(IsSha256Hex(digest));
  EXPECT_FALSE(IsSha256Hex(""));
  EXPECT_FALSE(IsSha256Hex(digest.substr(1)));
  EXPECT_FALSE(IsSha256Hex(digest + "0"));
  EXPECT_FALSE(IsSha256Hex(std::string(64, 'A')));
  EXPECT_FALSE(IsSha256Hex("../" + digest.substr(3)));
}

}  // namespace
}  // namespace phimap::testing
