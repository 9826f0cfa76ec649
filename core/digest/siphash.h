// SipHash-2-4: a hash of 64 bits under a key of 128 bits.
//
// For whoever does not know the key, the hashes of different texts are like independent random
// numbers. So a choice by hash is as good as one by lot, and the same for equal texts.
//
// Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF" (INDOCRYPT 2012).
// Cost:   some 1.5 cycles a byte and 30 ns a text. Pure, thread-safe, the same on every platform.
#ifndef PHIMAP_CORE_DIGEST_SIPHASH_H_
#define PHIMAP_CORE_DIGEST_SIPHASH_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace phimap {

using SipHashKey = std::array<uint64_t, 2>;

uint64_t SipHash(const SipHashKey& key, absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_DIGEST_SIPHASH_H_
