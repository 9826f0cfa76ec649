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
  if (table.roles_.empty()) return Wrong("it holds no token, so every call would be refused");
  return table;
}

absl::Status TokenTable::AddLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  const std::optional<Role> role = ParseRole(words[0]);
  if (!role.has_value() || words.size() != 2) {
    return Wrong("expected a role (reader, builder or admin) and a token");
  }
  absl::string_view token = words[1];
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
  if (roles_.size() == kMaxTokens) {
    return Wrong(absl::StrCat("the file has more than ", kMaxTokens, " tokens"));
  }
  if (!roles_.emplace(KeyOf(digest), Entry{digest, *role}).second) {
    return Wrong("this token is already on an earlier line");
  }
  return absl::OkStatus();
}

std::optional<Role> TokenTable::RoleOf(absl::string_view token) const {
  if (token.size() > kMaxTokenBytes) return std::nullopt;
  const Digest digest = DigestOf(token);
  const auto found = roles_.find(KeyOf(digest));
  if (found == roles_.end()) return std::nullopt;
  const Entry& entry = found->second;
  if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) != 0) return std::nullopt;
  return entry.role;
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
  auto loaded = std::make_shared<const TokenTable>(*std::move(table));
  MutexLock lock(&mutex_);
  table_.swap(loaded);
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
