// Bearer tokens and their roles.
//
// The text, one token a line, "#" begins a comment:
//
//   # role   token, or the SHA-256 of a token
//   reader   8c1f7d0a2b3c4d5e6f708192a3b4c5d6
//   admin    sha256:4be64a2e0c4d9ea43b5aef9f0c3aef0d8ee7fcd4ef5a64b4d0b0b8a5f0e5a1d2
//
// Only digests are kept. A presented token is hashed and looked up by its digest: callers cannot
// choose digests, so the time of the look-up reveals nothing about the tokens, and the digests
// themselves are compared in constant time.
#ifndef PHIMAP_SERVER_AUTH_TOKEN_TABLE_H_
#define PHIMAP_SERVER_AUTH_TOKEN_TABLE_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/auth/role.h"

namespace phimap {

inline constexpr int kMaxTokens = 10'000;
// Shorter ones can be guessed.
inline constexpr size_t kMinTokenBytes = 16;
inline constexpr size_t kMaxTokenBytes = 256;

// Immutable; thread-safe.
class TokenTable {
 public:
  // INVALID_ARGUMENT with the line at fault, which is not quoted: it may hold a token. A text
  // without tokens is an error too.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // nullopt for a token that is not in the table. Under a microsecond.
  std::optional<Role> RoleOf(absl::string_view token) const;

  int size() const { return static_cast<int>(roles_.size()); }
  // Whether the text held a token itself, not only digests, so that its readers could use it.
  bool holds_secrets() const { return holds_secrets_; }

 private:
  using Digest = std::array<unsigned char, 32>;

  static Digest DigestOf(absl::string_view token);
  absl::Status AddLine(absl::string_view line);

  // Keyed by the first eight bytes of the digest; a second token with the same ones is refused.
  struct Entry {
    Digest digest;
    Role role;
  };
  absl::flat_hash_map<uint64_t, Entry> roles_;
  bool holds_secrets_ = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_TOKEN_TABLE_H_
