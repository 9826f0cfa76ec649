#include "core/random/philox.h"

namespace phimap {
namespace {

// The paper recommends ten rounds. Six already pass BigCrush; the other four are a safety margin.
constexpr int kRounds = 10;
constexpr uint64_t kMultiplier0 = 0xD2511F53;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
// The numbers that are added to the two halves of the key after each round (a Weyl sequence): the
// golden ratio and √3 − 1, as fractions of 2^32.
constexpr uint32_t kKeyStep0 = 0x9E3779B9;
constexpr uint32_t kKeyStep1 = 0xBB67AE85;

}  // namespace

PhiloxBlock Philox4x32(const PhiloxKey& key, const PhiloxBlock& counter) {
  PhiloxBlock x = counter;
  uint32_t key0 = key[0];
  uint32_t key1 = key[1];
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * x[0];
    const uint64_t product1 = kMultiplier1 * x[2];
    x = {static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kKeyStep0;
    key1 += kKeyStep1;
  }
  return x;
}

}  // namespace phimap
