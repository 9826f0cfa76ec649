// The file of bearer tokens, which is read again when it changes.
//
// Guarantees: a changed file that is malformed, that cannot be read, or whose permissions are too
// wide has no effect: the previous tokens stay in force, and the log gives the reason. No token is
// ever logged.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_ADMISSION_TOKEN_FILE_H_
#define PHIMAP_SERVER_ADMISSION_TOKEN_FILE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/thread/mutex.h"
#include "prometheus/counter.h"
#include "server/admission/file_watch.h"
#include "server/admission/principal.h"
#include "server/observe/log.h"

namespace phimap {

// Credentials, and whom they stand for.
//
// The text has a line for each credential; "#" begins a comment:
//
//   # name   role     credential                         options
//   shop     reader   8c1f7d0a2b3c4d5e6f708192a3b4c5d6   until=2027-03-31
//   fraud    builder  sha256:4be64a2e0c4d9ea43b5aef9f…   names=fraud-*,shared-*:reader versions=50
//   fraud    builder  certificate:DNS:fraud.example      names=fraud-*
//   backup   admin    user:phimap
//
// A credential is one of
//
//   TOKEN                    a bearer token, 16 to 256 letters, digits and -._~+/=
//   sha256:HEX               the SHA-256 of one
//   certificate:sha256:HEX   a client's TLS certificate, by the SHA-256 of its DER form
//   certificate:DNS:NAME     a client's TLS certificate with this name among its subject
//                            alternative names; also URI:, IP: and email:
//   user:NAME, user:UID      a process of this user on the Unix socket
//
// The name may be left out if no option but `until` follows. It has 1 to 63 lower-case letters,
// digits and ._-, and begins with a letter or a digit. Several lines may have the same, so that one
// token can take the place of another; their limits must be equal. The options are
//
//   names=PATTERN[:ROLE],…   the mappings that the caller may know of; "*" in a pattern stands for
//                            any characters. The first pattern that matches counts. ROLE is lower
//                            than the line's role.
//   export=no                no Export: an artifact holds rows that it was built from
//   calls=N rows=N builds=N  rates of a server (caller_rates.h)
//   versions=N bytes=N       what its versions may take of the store
//   until=DATE               a day, of which the beginning in UTC counts, or a time of RFC 3339
//
// Only the digests of tokens are kept. A presented token is hashed and looked up by its digest.
// Callers cannot choose digests, so the time of the look-up reveals nothing about the tokens. The
// digests themselves are compared in constant time.
inline constexpr int kMaxTokens = 10'000;
// Shorter tokens could be guessed.
inline constexpr size_t kMinTokenBytes = 16;
inline constexpr size_t kMaxTokenBytes = 256;
inline constexpr size_t kMaxPrincipalNameBytes = 63;
inline constexpr size_t kMaxNamePatterns = 64;

// Thread-safe once it is in force.
class TokenTable {
 public:
  // Parses the text. INVALID_ARGUMENT gives the number of the malformed line, but does not quote
  // it, because it may hold a token. A text without tokens is an error too.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // Return whom a credential stands for, or null if it is not in the table. Find takes a bearer
  // token, and under a microsecond. FindCertificate takes the digest of a certificate, in
  // hexadecimal digits, and its names as "DNS:NAME"; the digest counts first, then the first name
  // that is in the table.
  PrincipalPointer Find(absl::string_view token) const;
  PrincipalPointer FindCertificate(absl::string_view digest,
                                   absl::Span<const std::string> names) const;
  PrincipalPointer FindUser(uint32_t uid) const;

  // Takes the principals of the credentials of which `before` says the same, so that their calls go
  // on, and what callers have spent of their rates.
  void KeepFrom(const TokenTable& before);
  // Revokes those that `next` has not.
  void RevokeOthers(const TokenTable& next) const;

  int size() const { return static_cast<int>(principals_.size() + others_.size()); }
  // Returns whether the text held a token itself, not only digests, so that whoever reads the text
  // could use the token.
  bool holds_secrets() const { return holds_secrets_; }

 private:
  using Digest = std::array<unsigned char, 32>;

  static Digest DigestOf(absl::string_view token);
  absl::Status AddLine(absl::string_view line);
  absl::Status AddToken(absl::string_view token, std::shared_ptr<Principal> principal);
  absl::Status AddOther(absl::string_view credential, std::shared_ptr<Principal> principal);
  // Gives the principal what all lines of its name share.
  absl::Status Join(Principal& principal);
  PrincipalPointer FindOther(const std::string& credential) const;

  // Entries of principals_, which is keyed by the first eight bytes of the digest. A second token
  // with the same eight bytes is rejected.
  struct Entry {
    Digest digest;
    std::shared_ptr<Principal> principal;
  };
  // What the lines of a name have in common.
  struct Shared {
    RateLimits rates;
    StoreShare stored;
    std::shared_ptr<CallerRates> spent;
  };
  absl::flat_hash_map<uint64_t, Entry> principals_;
  // By credentials that are not secret: "sha256:HEX" and "DNS:NAME" of certificates, "user:UID".
  absl::flat_hash_map<std::string, std::shared_ptr<Principal>> others_;
  absl::flat_hash_map<std::string, Shared> names_;
  bool holds_secrets_ = false;
};

class TokenFile {
 public:
  // Reads `path`, and checks every 400 ms whether it has changed. Returns INVALID_ARGUMENT if the
  // file is malformed, and FAILED_PRECONDITION if it cannot be read, if other users may write it,
  // or if other users may read a token in it. `logger` must outlive the result.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path,
                                                         const Logger& logger);
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::shared_ptr<const TokenTable> table() const;
  // A number that no other table of this process has, so that a caller that keeps table() need not
  // ask for it again while this is the same. Does not lock.
  uint64_t table_number() const { return table_number_.load(std::memory_order_acquire); }

  // Counts in `failures`, from now on, how often the changed file could not be used. `failures`
  // must outlive this object.
  void CountFailures(prometheus::Counter* failures) { failures_.store(failures); }

  // Checks the file now.
  void Refresh() { watch_.Look(); }

 private:
  TokenFile(std::string path, const Logger& logger);
  absl::Status Load();
  void Reload();

  const std::string path_;
  const Logger& logger_;
  std::atomic<prometheus::Counter*> failures_{nullptr};
  mutable Mutex mutex_;
  std::shared_ptr<const TokenTable> table_ ABSL_GUARDED_BY(mutex_);
  // Set after table_, so that table() is never older than the number says.
  std::atomic<uint64_t> table_number_{0};
  // Declared last, so that it is destroyed first: until then it calls Reload, which uses the other
  // members.
  FileWatch watch_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_TOKEN_FILE_H_
