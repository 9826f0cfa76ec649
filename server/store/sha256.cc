#include "server/store/sha256.h"

#include <algorithm>

#include "core/digest/sha256.h"

namespace phimap {

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Hex();
}

bool IsSha256Hex(absl::string_view text) {
  constexpr size_t kDigits = 64;
  return text.size() == kDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace phimap
