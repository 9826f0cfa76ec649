#include "core/digest/siphash.h"

#include <bit>
#include <cstring>

namespace phimap {
namespace {

// The state, which begins as "somepseudorandomlygeneratedbytes" under the key.
struct SipState {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Absorb(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
};

}  // namespace

uint64_t SipHash(const SipHashKey& key, absl::string_view bytes) {
  static_assert(std::endian::native == std::endian::little, "words are little-endian");
  SipState state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    state.Absorb(word);
  }
  // The last word has the remaining bytes, and the length in its highest byte.
  uint64_t last = 0;
  if (bytes.size() > whole) std::memcpy(&last, bytes.data() + whole, bytes.size() - whole);
  state.Absorb(last | uint64_t{bytes.size()} << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace phimap
