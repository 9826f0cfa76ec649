// SHA-256. The name of every artifact is its SHA-256.
#ifndef PHIMAP_SERVER_STORE_SHA256_H_
#define PHIMAP_SERVER_STORE_SHA256_H_

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "core/digest/sha256.h"

namespace phimap {

// Returns the SHA-256 of `bytes` as 64 lower-case hexadecimal digits. Pure, thread-safe.
inline std::string Sha256Hex(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Hex();
}

// Whether `text` has the form that Sha256Hex returns. No other text may become part of a path.
inline bool IsSha256Hex(absl::string_view text) {
  constexpr size_t kDigits = 64;
  return text.size() == kDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SHA256_H_
