#include "core/random/random_stream.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// The known answers come with Random123, the authors' own implementation (kat_vectors, philox4x32
// 10).
TEST(PhiloxTest, GivesTheKnownAnswersOfItsAuthors) {
  struct {
    PhiloxKey key;
    PhiloxBlock counter;
    PhiloxBlock expected;
  } const cases[] = {
      {{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0xa4093822, 0x299f31d0},
       {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& c : cases) EXPECT_EQ(Philox4x32(c.key, c.counter), c.expected);
}

TEST(PhiloxTest, EveryWordOfKeyAndCounterMatters) {
  const PhiloxBlock base = Philox4x32({1, 2}, {3, 4, 5, 6});
  for (int word = 0; word < 2; ++word) {
    PhiloxKey key = {1, 2};
    key[word] ^= 0x80000000;
    EXPECT_NE(Philox4x32(key, {3, 4, 5, 6}), base);
  }
  for (int word = 0; word < 4; ++word) {
    PhiloxBlock counter = {3, 4, 5, 6};
    counter[word] ^= 0x80000000;
    EXPECT_NE(Philox4x32({1, 2}, counter), base);
  }
}

}  // namespace
}  // namespace phimap::testing
