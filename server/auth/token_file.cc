#include "server/auth/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Enough for kMaxTokens lines with a role, a digest and a comment.
constexpr size_t kMaxFileBytes = size_t{4} << 20;

absl::Status Refuse(const std::string& path, absl::string_view why) {
  return MakeError(Code::kFailedPrecondition, "TOKEN_FILE_INVALID", "token_file",
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
    return MakeError(Code::kInvalidArgument, "TOKEN_FILE_INVALID", "token_file",
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
