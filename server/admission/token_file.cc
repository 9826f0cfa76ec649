#include "server/admission/token_file.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

namespace {

constexpr absl::string_view kDigestPrefix = "sha256:";

absl::Status Wrong(absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kTokenFileInvalid, "", what);
}

// Characters that a "Bearer" header may carry: RFC 6750, section 2.1.
bool IsTokenByte(char c) { return absl::ascii_isalnum(c) || absl::StrContains("-._~+/=", c); }

bool IsPrincipalName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxPrincipalNameBytes &&
         !absl::StrContains("._-", name[0]) && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || absl::StrContains("._-", c);
         });
}

// Parses what follows a token.
absl::Status ReadOption(absl::string_view option, Principal& principal) {
  if (!absl::ConsumePrefix(&option, "until=")) {
    return Wrong("expected nothing or until=DATE after the token");
  }
  std::string error;
  if (absl::ParseTime("%Y-%m-%d", option, &principal.until, &error) ||
      absl::ParseTime(absl::RFC3339_full, option, &principal.until, &error)) {
    return absl::OkStatus();
  }
  return Wrong("expected a day, as until=2027-03-31, or a time, as until=2027-03-31T12:00:00Z");
}

uint64_t KeyOf(const std::array<unsigned char, 32>& digest) {
  uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof(key));
  return key;
}

}  // namespace

TokenTable::Digest TokenTable::DigestOf(absl::string_view token) {
  // The algorithm is looked up once, and each thread has its own context, because OpenSSL 3 takes
  // longer to search its providers and to allocate than to hash.
  static EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
      EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  Digest digest;
  unsigned int written = 0;
  // This fails only if OpenSSL cannot allocate a context or is built without SHA-256.
  PHIMAP_CHECK(sha256 != nullptr && context != nullptr &&
               EVP_DigestInit_ex(context.get(), sha256, nullptr) == 1 &&
               EVP_DigestUpdate(context.get(), token.data(), token.size()) == 1 &&
               EVP_DigestFinal_ex(context.get(), digest.data(), &written) == 1);
  PHIMAP_CHECK(written == digest.size());
  return digest;
}

absl::StatusOr<TokenTable> TokenTable::Parse(absl::string_view text) {
  TokenTable table;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (const absl::Status added = table.AddLine(line); !added.ok()) {
      return MakeError(added.code(), reason::kTokenFileInvalid, "",
                       absl::StrCat("line ", number, ": ", added.message()),
                       {{"line", absl::StrCat(number)}});
    }
  }
  if (table.principals_.empty()) return Wrong("it holds no token, so every call would be refused");
  return table;
}

absl::Status TokenTable::AddLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  // A word that is too short for a token follows a name.
  const bool named = words.size() > 2 && ParseRole(words[1]).has_value();
  const size_t at = named ? 1 : 0;
  const std::optional<Role> role = ParseRole(words[at]);
  if (!role.has_value() || words.size() < at + 2) {
    return Wrong("expected a role (reader, builder or admin) and a token, perhaps after a name");
  }
  auto principal = std::make_shared<Principal>();
  principal->role = *role;
  if (named) {
    if (!IsPrincipalName(words[0])) {
      return Wrong(
          absl::StrCat("a name has 1 to ", kMaxPrincipalNameBytes,
                       " lower-case letters, digits and ._-, and begins with a letter or a digit"));
    }
    principal->name = std::string(words[0]);
    principal->share_key = absl::StrCat(" ", words[0]);  // which no token begins with
  }
  for (size_t i = at + 2; i < words.size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(ReadOption(words[i], *principal));
  }
  absl::string_view token = words[at + 1];
  Digest digest;
  if (absl::ConsumePrefix(&token, kDigestPrefix)) {
    if (token.size() != 2 * digest.size() ||
        !std::all_of(token.begin(), token.end(), absl::ascii_isxdigit)) {
      return Wrong("expected 64 hexadecimal digits after sha256:");
    }
    const std::string bytes = absl::HexStringToBytes(token);
    std::copy(bytes.begin(), bytes.end(), digest.begin());
  } else {
    if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes) {
      return Wrong(absl::StrCat("a token has ", kMinTokenBytes, " to ", kMaxTokenBytes,
                                " bytes, got ", token.size()));
    }
    if (!std::all_of(token.begin(), token.end(), IsTokenByte)) {
      return Wrong("a token holds letters, digits and -._~+/= only");
    }
    digest = DigestOf(token);
    holds_secrets_ = true;
  }
  if (principals_.size() == kMaxTokens) {
    return Wrong(absl::StrCat("the file has more than ", kMaxTokens, " tokens"));
  }
  if (!principals_.emplace(KeyOf(digest), Entry{digest, std::move(principal)}).second) {
    return Wrong("this token is already on an earlier line");
  }
  return absl::OkStatus();
}

PrincipalPointer TokenTable::Find(absl::string_view token) const {
  if (token.size() > kMaxTokenBytes) return nullptr;
  const Digest digest = DigestOf(token);
  const auto found = principals_.find(KeyOf(digest));
  if (found == principals_.end()) return nullptr;
  const Entry& entry = found->second;
  if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) != 0) return nullptr;
  return entry.principal;
}

void TokenTable::KeepFrom(const TokenTable& before) {
  for (auto& [key, entry] : principals_) {
    const auto found = before.principals_.find(key);
    if (found == before.principals_.end() || found->second.digest != entry.digest) continue;
    const std::shared_ptr<Principal>& old = found->second.principal;
    const Principal& now = *entry.principal;
    if (old->name == now.name && old->role == now.role && old->until == now.until) {
      entry.principal = old;
    }
  }
}

void TokenTable::RevokeOthers(const TokenTable& next) const {
  for (const auto& [key, entry] : principals_) {
    const auto found = next.principals_.find(key);
    if (found == next.principals_.end() || found->second.principal != entry.principal) {
      entry.principal->revoked.store(true);
    }
  }
}

absl::Status Principal::Check() const {
  if (revoked.load(std::memory_order_relaxed)) {
    return MakeError(absl::StatusCode::kUnauthenticated, reason::kTokenRevoked, "",
                     "the token was taken out of this server's file, or its role was changed; "
                     "call again with the token that is in force");
  }
  if (until != absl::InfiniteFuture() && absl::Now() >= until) {
    return MakeError(absl::StatusCode::kUnauthenticated, reason::kTokenExpired, "",
                     absl::StrCat("the token was valid until ",
                                  absl::FormatTime(absl::RFC3339_sec, until, absl::UTCTimeZone()),
                                  "; ask the operator for a new one"));
  }
  return absl::OkStatus();
}

namespace {

using Code = absl::StatusCode;

// Enough for kMaxTokens lines with a role, a digest and a comment.
constexpr size_t kMaxFileBytes = size_t{4} << 20;

absl::Status Refuse(const std::string& path, absl::string_view why) {
  return MakeError(Code::kFailedPrecondition, reason::kTokenFileInvalid, "token_file",
                   absl::StrCat(path, ": ", why), {{"path", path}});
}

struct Content {
  std::string text;
  mode_t mode = 0;
};

absl::StatusOr<Content> ReadOpen(const std::string& path, int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return Refuse(path, std::strerror(errno));
  if (!S_ISREG(file.st_mode)) return Refuse(path, "expected a regular file");
  Content content{.text = {}, .mode = file.st_mode};
  char chunk[65536];
  for (ssize_t got; (got = read(fd, chunk, sizeof(chunk))) != 0;) {
    if (got < 0) return Refuse(path, std::strerror(errno));
    content.text.append(chunk, static_cast<size_t>(got));
    if (content.text.size() > kMaxFileBytes) {
      return Refuse(path, absl::StrCat("it has more than ", kMaxFileBytes, " bytes"));
    }
  }
  return content;
}

absl::StatusOr<Content> Read(const std::string& path) {
  // O_NONBLOCK: if the path is a pipe, open must not wait for its other end.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Refuse(path, std::strerror(errno));
  absl::StatusOr<Content> content = ReadOpen(path, fd);
  close(fd);
  return content;
}

absl::Status CheckMode(const std::string& path, mode_t mode, const TokenTable& table) {
  if ((mode & S_IWOTH) != 0) return Refuse(path, "other users may write it; chmod o-w");
  if ((mode & S_IROTH) != 0 && table.holds_secrets()) {
    return Refuse(path,
                  "other users may read its tokens; chmod o-r, or replace each token by "
                  "\"sha256:\" and its SHA-256");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path,
                                                           const Logger& logger) {
  auto file = absl::WrapUnique(new TokenFile(path, logger));
  PHIMAP_RETURN_IF_ERROR(file->Load());
  file->watch_.Start();
  return file;
}

TokenFile::TokenFile(std::string path, const Logger& logger)
    : path_(std::move(path)), logger_(logger), watch_({path_}, [this] { Reload(); }) {}

std::shared_ptr<const TokenTable> TokenFile::table() const {
  MutexLock lock(&mutex_);
  return table_;
}

absl::Status TokenFile::Load() {
  PHIMAP_ASSIGN_OR_RETURN(const Content content, Read(path_));
  absl::StatusOr<TokenTable> table = TokenTable::Parse(content.text);
  if (!table.ok()) {
    return MakeError(Code::kInvalidArgument, reason::kTokenFileInvalid, "token_file",
                     absl::StrCat(path_, ": ", table.status().message()),
                     DetailOf(table.status()).value_or(ErrorDetail()).metadata);
  }
  PHIMAP_RETURN_IF_ERROR(CheckMode(path_, content.mode, *table));
  logger_.Log(LogLevel::kInfo, "tokens_loaded",
              {{"path", path_}, {"tokens", absl::StrCat(table->size())}});
  const std::shared_ptr<const TokenTable> before = this->table();
  if (before != nullptr) table->KeepFrom(*before);
  const auto loaded = std::make_shared<const TokenTable>(*std::move(table));
  {
    MutexLock lock(&mutex_);
    table_ = loaded;
  }
  // Only now, so that a call that begins is refused or finds whom its token stands for in force.
  if (before != nullptr) before->RevokeOthers(*loaded);
  return absl::OkStatus();
}

void TokenFile::Reload() {
  if (const absl::Status loaded = Load(); !loaded.ok()) {
    if (prometheus::Counter* const failures = failures_.load()) failures->Increment();
    // The message names the file's lines and numbers, never its content.
    logger_.Log(LogLevel::kError, "tokens_not_loaded",
                {{"error", std::string(loaded.message())}, {"in_force", "the previous tokens"}});
  }
}

}  // namespace phimap
