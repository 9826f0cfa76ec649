#include "core/random/random_stream.h"

#include <numeric>
#include <utility>

#include "core/random/portable_math.h"
#include "core/status/check.h"

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

// gcc and clang have this type on every 64-bit target; __extension__ because ISO C++ does not.
__extension__ using Uint128 = unsigned __int128;

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

uint64_t RandomStream::Bits64(uint64_t index, uint32_t attempt) const {
  const uint64_t block_index = index >> 1;
  const PhiloxBlock block =
      Philox4x32({static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)},
                 {static_cast<uint32_t>(block_index), static_cast<uint32_t>(block_index >> 32),
                  static_cast<uint32_t>(stream_), attempt});
  const int half = static_cast<int>(index & 1) * 2;
  return block[half] | (uint64_t{block[half + 1]} << 32);
}

double RandomStream::UniformOpen01(uint64_t index) const {
  return (static_cast<double>(Bits64(index) >> 12) + 0.5) * 0x1p-52;  // both operations are exact
}

uint64_t RandomStream::UniformBelow(uint64_t index, uint64_t n) const {
  PHIMAP_CHECK(n > 0);
  // The result is the high half of the product of a 64-bit random number with n. If the low half is
  // below 2^64 mod n, the number is rejected: without rejection, some results would occur more
  // often than others. The remainder costs a division. It is less than n, so it is needed only if
  // the low half is less than n.
  Uint128 product = static_cast<Uint128>(Bits64(index, 0)) * n;
  if (static_cast<uint64_t>(product) < n) [[unlikely]] {
    const uint64_t threshold = (0 - n) % n;
    for (uint32_t attempt = 1; static_cast<uint64_t>(product) < threshold; ++attempt) {
      product = static_cast<Uint128>(Bits64(index, attempt)) * n;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

double RandomStream::Normal(uint64_t index) const { return NormalQuantile(UniformOpen01(index)); }

std::vector<int64_t> FirstOfPermutation(int64_t n, int64_t k, const RandomStream& stream) {
  PHIMAP_CHECK(0 <= k && k <= n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t j = 0; j < k; ++j) {
    const uint64_t left = static_cast<uint64_t>(n - j);
    std::swap(order[j], order[j + static_cast<int64_t>(stream.UniformBelow(j, left))]);
  }
  order.resize(static_cast<size_t>(k));
  return order;
}

}  // namespace phimap
