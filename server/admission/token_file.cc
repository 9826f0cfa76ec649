#include "server/admission/token_file.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

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

absl::Status ReadUntil(absl::string_view date, PrincipalFacts& facts) {
  std::string error;
  if (absl::ParseTime("%Y-%m-%d", date, &facts.until, &error) ||
      absl::ParseTime(absl::RFC3339_full, date, &facts.until, &error)) {
    return absl::OkStatus();
  }
  return Wrong("expected a day, as until=2027-03-31, or a time, as until=2027-03-31T12:00:00Z");
}

bool IsPattern(absl::string_view pattern) {
  return !pattern.empty() && pattern.size() <= kMaxPrincipalNameBytes &&
         std::all_of(pattern.begin(), pattern.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '*';
         });
}

absl::Status ReadNames(absl::string_view patterns, PrincipalFacts& facts) {
  for (absl::string_view text : absl::StrSplit(patterns, ',')) {
    NameRight right{.pattern = std::string(text), .role = facts.role};
    if (const size_t colon = text.find(':'); colon != absl::string_view::npos) {
      const std::optional<Role> role = ParseRole(text.substr(colon + 1));
      if (!role.has_value() || *role > facts.role) {
        return Wrong(absl::StrCat("expected, after the colon of a pattern, a role up to ",
                                  RoleName(facts.role), ", which is the line's"));
      }
      right = {.pattern = std::string(text.substr(0, colon)), .role = *role};
    }
    if (!IsPattern(right.pattern)) {
      return Wrong(absl::StrCat("expected names=PATTERN,…, patterns of 1 to ",
                                kMaxPrincipalNameBytes,
                                " lower-case letters, digits, - and *, as in "
                                "names=fraud-*,shared-*:reader"));
    }
    facts.names.push_back(std::move(right));
  }
  if (facts.names.size() > kMaxNamePatterns) {
    return Wrong(absl::StrCat("a line has at most ", kMaxNamePatterns, " patterns of names, got ",
                              facts.names.size()));
  }
  return absl::OkStatus();
}

absl::Status ReadLimit(absl::string_view key, absl::string_view value,
                       std::optional<int64_t>& limit) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 1 || number > int64_t{1} << 50) {
    return Wrong(absl::StrCat("expected ", key, "=N with a whole number N from 1 to 2^50"));
  }
  limit = number;
  return absl::OkStatus();
}

// Parses an option, KEY=VALUE.
absl::Status ReadOption(absl::string_view option, PrincipalFacts& facts) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(option, absl::MaxSplits('=', 1));
  const auto& [key, value] = parts;
  if (key == "until") return ReadUntil(value, facts);
  if (key == "names") return ReadNames(value, facts);
  if (key == "export") {
    if (value != "no" && value != "yes") return Wrong("expected export=no or export=yes");
    facts.exports = value == "yes";
    return absl::OkStatus();
  }
  for (const Rated kind : {Rated::kCalls, Rated::kRows, Rated::kBuilds}) {
    if (key == RatedName(kind)) {
      return ReadLimit(key, value, facts.rates.of[static_cast<size_t>(kind)]);
    }
  }
  if (key == "versions") return ReadLimit(key, value, facts.stored.versions);
  if (key == "bytes") return ReadLimit(key, value, facts.stored.bytes);
  static const std::vector<std::string> known = {"names",  "export",   "calls", "rows",
                                                 "builds", "versions", "bytes", "until"};
  const std::string* const meant = NearestTo(key, /*unmeant=*/0, known);
  return Wrong(absl::StrCat(
      "expected nothing after the token, or options: names=, export=no, calls=, rows=, builds=, "
      "versions=, bytes=, until=",
      meant == nullptr ? "" : absl::StrCat("; did you mean ", *meant, "=?")));
}

// Returns the number of a user, given by name or number; nullopt if there is none.
std::optional<uint32_t> UserId(const std::string& user) {
  uint32_t uid = 0;
  if (absl::SimpleAtoi(user, &uid)) return uid;
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::vector<char> buffer(16384);
  if (getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return found->pw_uid;
}

constexpr absl::string_view kCertificatePrefix = "certificate:";
constexpr absl::string_view kUserPrefix = "user:";

bool IsSha256(absl::string_view hex) {
  return hex.size() == 64 && std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit);
}

// Returns by what a certificate is found, from the part of a credential after "certificate:".
absl::StatusOr<std::string> CertificateKey(absl::string_view text) {
  absl::string_view hex = text;
  if (absl::ConsumePrefix(&hex, kDigestPrefix)) {
    if (IsSha256(hex)) return absl::StrCat(kDigestPrefix, absl::AsciiStrToLower(hex));
    return Wrong("expected 64 hexadecimal digits after certificate:sha256:");
  }
  for (const absl::string_view kind : {"DNS:", "URI:", "IP:", "email:"}) {
    if (!absl::StartsWith(text, kind) || text.size() == kind.size()) continue;
    // Host names are compared without regard to case.
    return kind == "DNS:" ? absl::StrCat(kind, absl::AsciiStrToLower(text.substr(kind.size())))
                          : std::string(text);
  }
  return Wrong(
      "expected certificate: to be followed by sha256:HEX, DNS:NAME, URI:NAME, IP:ADDRESS or "
      "email:ADDRESS");
}

// A "#" begins a comment, but for one within the name of a certificate, which may be a URI.
absl::string_view WithoutComment(absl::string_view line) {
  for (size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1)) {
    const size_t space = line.substr(0, at).find_last_of(" \t");
    const absl::string_view word = line.substr(space == line.npos ? 0 : space + 1);
    if (!absl::StartsWith(word, kCertificatePrefix)) return line.substr(0, at);
  }
  return line;
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
    line = absl::StripAsciiWhitespace(WithoutComment(line));
    if (line.empty()) continue;
    if (const absl::Status added = table.AddLine(line); !added.ok()) {
      return MakeError(added.code(), reason::kTokenFileInvalid, "",
                       absl::StrCat("line ", number, ": ", added.message()),
                       {{"line", absl::StrCat(number)}});
    }
  }
  if (table.size() == 0) return Wrong("it holds no token, so every call would be refused");
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
    const absl::string_view key = words[i].substr(0, words[i].find('='));
    for (size_t before = at + 2; before < i; ++before) {
      if (words[before].substr(0, words[before].find('=')) == key) {
        return Wrong("an option of the line is given twice");
      }
    }
    PHIMAP_RETURN_IF_ERROR(ReadOption(words[i], *principal));
  }
  PHIMAP_RETURN_IF_ERROR(Join(*principal));
  if (size() == kMaxTokens) {
    return Wrong(absl::StrCat("the file has more than ", kMaxTokens, " tokens"));
  }
  const absl::string_view credential = words[at + 1];
  if (absl::StartsWith(credential, kCertificatePrefix) ||
      absl::StartsWith(credential, kUserPrefix)) {
    return AddOther(credential, std::move(principal));
  }
  return AddToken(credential, std::move(principal));
}

absl::Status TokenTable::Join(Principal& principal) {
  const bool limited = principal.rates.any() || principal.stored != StoreShare();
  if (principal.name.empty()) {
    if (!limited && principal.names.empty() && principal.exports) return absl::OkStatus();
    return Wrong("expected a name before the role: all options but until= belong to a name");
  }
  const auto [found, added] = names_.try_emplace(principal.name);
  Shared& shared = found->second;
  if (added) {
    shared.rates = principal.rates;
    shared.stored = principal.stored;
    if (shared.rates.any()) shared.spent = std::make_shared<CallerRates>(shared.rates);
  } else if (shared.rates != principal.rates || shared.stored != principal.stored) {
    return Wrong(absl::StrCat(
        "an earlier line of this name has other limits (calls, rows, builds, versions, bytes), "
        "which all lines of a name share"));
  }
  principal.spent = shared.spent;
  return absl::OkStatus();
}

absl::Status TokenTable::AddOther(absl::string_view credential,
                                  std::shared_ptr<Principal> principal) {
  std::string key;
  if (absl::ConsumePrefix(&credential, kCertificatePrefix)) {
    PHIMAP_ASSIGN_OR_RETURN(key, CertificateKey(credential));
  } else {
    const std::string user(absl::StripPrefix(credential, kUserPrefix));
    const std::optional<uint32_t> uid = UserId(user);
    if (!uid.has_value()) return Wrong("this machine has no user of the name after user:");
    key = absl::StrCat(kUserPrefix, *uid);
  }
  if (!others_.emplace(std::move(key), std::move(principal)).second) {
    return Wrong("this certificate or user is already on an earlier line");
  }
  return absl::OkStatus();
}

absl::Status TokenTable::AddToken(absl::string_view token, std::shared_ptr<Principal> principal) {
  Digest digest;
  if (absl::ConsumePrefix(&token, kDigestPrefix)) {
    if (!IsSha256(token)) return Wrong("expected 64 hexadecimal digits after sha256:");
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

PrincipalPointer TokenTable::FindOther(const std::string& credential) const {
  const auto found = others_.find(credential);
  return found == others_.end() ? nullptr : found->second;
}

PrincipalPointer TokenTable::FindCertificate(absl::string_view digest,
                                             absl::Span<const std::string> names) const {
  if (others_.empty()) return nullptr;
  if (PrincipalPointer found = FindOther(absl::StrCat(kDigestPrefix, digest))) return found;
  for (const std::string& name : names) {
    if (PrincipalPointer found = FindOther(name)) return found;
  }
  return nullptr;
}

PrincipalPointer TokenTable::FindUser(uint32_t uid) const {
  return others_.empty() ? nullptr : FindOther(absl::StrCat(kUserPrefix, uid));
}

void TokenTable::KeepFrom(const TokenTable& before) {
  for (auto& [name, shared] : names_) {
    const auto found = before.names_.find(name);
    if (found != before.names_.end() && found->second.rates == shared.rates) {
      shared.spent = found->second.spent;
    }
  }
  // A principal of which the file says the same is kept, and any other gets what its name has
  // spent.
  const auto keep = [this](const std::shared_ptr<Principal>& old, std::shared_ptr<Principal>& now) {
    if (old != nullptr && static_cast<const PrincipalFacts&>(*old) == *now) {
      now = old;
    } else if (!now->name.empty()) {
      now->spent = names_.find(now->name)->second.spent;
    }
  };
  for (auto& [key, entry] : principals_) {
    const auto found = before.principals_.find(key);
    const bool there = found != before.principals_.end() && found->second.digest == entry.digest;
    keep(there ? found->second.principal : nullptr, entry.principal);
  }
  for (auto& [key, principal] : others_) {
    const auto found = before.others_.find(key);
    keep(found != before.others_.end() ? found->second : nullptr, principal);
  }
}

void TokenTable::RevokeOthers(const TokenTable& next) const {
  for (const auto& [key, entry] : principals_) {
    const auto found = next.principals_.find(key);
    if (found == next.principals_.end() || found->second.principal != entry.principal) {
      entry.principal->revoked.store(true);
    }
  }
  for (const auto& [key, principal] : others_) {
    const auto found = next.others_.find(key);
    if (found == next.others_.end() || found->second != principal) principal->revoked.store(true);
  }
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
  logger_.Log(LogLevel::kInfo, "tokens_loaded", {{"path", path_}, {"tokens", table->size()}});
  const std::shared_ptr<const TokenTable> before = this->table();
  if (before != nullptr) table->KeepFrom(*before);
  const auto loaded = std::make_shared<const TokenTable>(*std::move(table));
  static std::atomic<uint64_t> tables{0};
  {
    MutexLock lock(&mutex_);
    table_ = loaded;
    table_number_.store(++tables, std::memory_order_release);
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
                {{"error", loaded.message()}, {"in_force", "the previous tokens"}});
  }
}

}  // namespace phimap
