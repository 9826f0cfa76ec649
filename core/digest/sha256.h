// Computes SHA-256 piece by piece. The digest of an artifact names it, and is computed while the
// artifact is transferred.
#ifndef PHIMAP_CORE_DIGEST_SHA256_H_
#define PHIMAP_CORE_DIGEST_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace phimap {

// Not thread-safe.
//
// Example:
//   Sha256 hash;
//   while (…) hash.Update(piece);
//   const std::string digest = hash.Hex();
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(absl::string_view bytes);
  // Returns the digest of all bytes so far, as 64 lower-case hexadecimal digits. Call once, last.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_DIGEST_SHA256_H_
