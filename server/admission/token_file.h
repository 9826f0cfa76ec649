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
#include "core/thread/mutex.h"
#include "prometheus/counter.h"
#include "server/admission/file_watch.h"
#include "server/admission/principal.h"
#include "server/observe/log.h"

namespace phimap {

// Bearer tokens, and whom they stand for.
//
// The text has one token per line; "#" begins a comment:
//
//   # name   role     token, or the SHA-256 of a token
//   shop     reader   8c1f7d0a2b3c4d5e6f708192a3b4c5d6   until=2027-03-31
//   admin    sha256:4be64a2e0c4d9ea43b5aef9f0c3aef0d8ee7fcd4ef5a64b4d0b0b8a5f0e5a1d2
//
// The name may be left out. It has 1 to 63 lower-case letters, digits and ._-, and begins with a
// letter or a digit. Several tokens may have the same, so that one can take the place of another.
// `until` is a day, of which the beginning in UTC counts, or a time of RFC 3339.
// Only digests are kept. A presented token is hashed and looked up by its digest. Callers cannot
// choose digests, so the time of the look-up reveals nothing about the tokens. The digests
// themselves are compared in constant time.
inline constexpr int kMaxTokens = 10'000;
// Shorter tokens could be guessed.
inline constexpr size_t kMinTokenBytes = 16;
inline constexpr size_t kMaxTokenBytes = 256;
inline constexpr size_t kMaxPrincipalNameBytes = 63;

// Thread-safe once it is in force.
class TokenTable {
 public:
  // Parses the text. INVALID_ARGUMENT gives the number of the malformed line, but does not quote
  // it, because it may hold a token. A text without tokens is an error too.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // Returns whom a token stands for, or null if it is not in the table. Takes under a microsecond.
  PrincipalPointer Find(absl::string_view token) const;

  // Takes the principals of the tokens of which `before` says the same, so that their calls go on.
  void KeepFrom(const TokenTable& before);
  // Revokes those that `next` has not.
  void RevokeOthers(const TokenTable& next) const;

  int size() const { return static_cast<int>(principals_.size()); }
  // Returns whether the text held a token itself, not only digests, so that whoever reads the text
  // could use the token.
  bool holds_secrets() const { return holds_secrets_; }

 private:
  using Digest = std::array<unsigned char, 32>;

  static Digest DigestOf(absl::string_view token);
  absl::Status AddLine(absl::string_view line);

  // Entries of principals_, which is keyed by the first eight bytes of the digest. A second token
  // with the same eight bytes is rejected.
  struct Entry {
    Digest digest;
    std::shared_ptr<Principal> principal;
  };
  absl::flat_hash_map<uint64_t, Entry> principals_;
  bool holds_secrets_ = false;
};

class TokenFile {
 public:
  // Reads `path`, and checks every second whether it has changed. Returns INVALID_ARGUMENT if the
  // file is malformed, and FAILED_PRECONDITION if it cannot be read, if other users may write it,
  // or if other users may read a token in it. `logger` must outlive the result.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path,
                                                         const Logger& logger);
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::shared_ptr<const TokenTable> table() const;

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
  // Declared last, so that it is destroyed first: until then it calls Reload, which uses the other
  // members.
  FileWatch watch_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_TOKEN_FILE_H_
