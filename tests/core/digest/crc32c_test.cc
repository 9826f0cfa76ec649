#include "core/digest/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// The known answers are from RFC 3720, appendix B.4. That of "123456789" is the check value that is
// published for the polynomial.
TEST(Crc32cTest, KnownAnswers) {
  std::string rising;
  std::string falling;
  for (int i = 0; i < 32; ++i) {
    rising.push_back(static_cast<char>(i));
    falling.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(falling), 0x113FDB5Cu);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, FoldingEightBytesEqualsOneBitAtATime) {
  std::string bytes;
  for (int n = 0; n < 100; ++n) {
    uint32_t crc = ~0u;
    for (const char c : bytes) {
      crc ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    }
    EXPECT_EQ(Crc32c(bytes), ~crc) << n;
    for (int shift = 1; shift < 8; ++shift) {  // at any alignment
      const std::string shifted = std::string(shift, 'x') + bytes;
      EXPECT_EQ(Crc32c(absl::string_view(shifted).substr(shift)), ~crc) << n << ", " << shift;
    }
    bytes.push_back(static_cast<char>(n * 37 + 11));
  }
}

}  // namespace
}  // namespace phimap::testing
