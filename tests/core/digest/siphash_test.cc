#include "core/digest/siphash.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// The test vectors of the paper's authors: the key has the bytes 0 … 15, and text n the bytes
// 0 … n − 1. That of 15 bytes is also in the paper's appendix A.
TEST(SipHashTest, GivesThePublishedHashes) {
  constexpr uint64_t kPublished[] = {
      0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
      0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
      0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
      0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5};
  const SipHashKey key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  for (const uint64_t hash : kPublished) {
    EXPECT_EQ(SipHash(key, text), hash) << text.size() << " bytes";
    text.push_back(static_cast<char>(text.size()));
  }
}

}  // namespace
}  // namespace phimap::testing
