#include "core/digest/sha256.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "core/status/check.h"

namespace phimap {
namespace {

constexpr size_t kDigestBytes = 32;

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

// OpenSSL's calls fail only when it cannot allocate, or is built without SHA-256.
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  PHIMAP_CHECK(context_ != nullptr);
  PHIMAP_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(absl::string_view bytes) {
  PHIMAP_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Hex() {
  std::string digest(kDigestBytes, '\0');
  unsigned int written = 0;
  PHIMAP_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                  &written) == 1);
  PHIMAP_CHECK(written == kDigestBytes);
  return absl::BytesToHexString(digest);
}

}  // namespace phimap
