#include "server/store/sha256.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/status/check.h"

namespace phimap {
namespace {

constexpr size_t kDigestBytes = 32;

}  // namespace

std::string Sha256Hex(absl::string_view bytes) {
  std::string digest(kDigestBytes, '\0');
  unsigned int written = 0;
  // It fails only when OpenSSL cannot allocate a context or is built without SHA-256.
  PHIMAP_CHECK(EVP_Digest(bytes.data(), bytes.size(),
                          reinterpret_cast<unsigned char*>(digest.data()), &written, EVP_sha256(),
                          nullptr) == 1);
  PHIMAP_CHECK(written == kDigestBytes);
  return absl::BytesToHexString(digest);
}

bool IsSha256Hex(absl::string_view text) {
  return text.size() == 2 * kDigestBytes && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace phimap
