#include "core/random/random_stream.h"

#include "core/random/philox.h"
#include "core/random/portable_math.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// gcc and clang have this type on every 64-bit target; __extension__ because ISO C++ does not.
__extension__ using Uint128 = unsigned __int128;

}  // namespace

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

}  // namespace phimap
