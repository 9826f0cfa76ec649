#include "server/auth/token_table.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/check.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr absl::string_view kDigestPrefix = "sha256:";

absl::Status Wrong(absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "TOKEN_FILE_INVALID", "", what);
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
      return MakeError(added.code(), "TOKEN_FILE_INVALID", "",
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

}  // namespace phimap
