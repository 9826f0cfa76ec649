#include "server/store/audit_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/start_thread.h"

namespace phimap {
namespace {

// Entries that are copied at a time.
constexpr int kAtOnce = 500;
// Time after which entries of other servers are copied.
constexpr auto kFollowEvery = std::chrono::seconds(1);
constexpr int64_t kRetryMs = 1000;

// What the line of an entry begins with: its number and time.
struct LineHead {
  int64_t number = 0;
  absl::Time time;
};

// Parses {"number":N,"time":"T"…; nullopt for the line of another file.
std::optional<LineHead> HeadOf(absl::string_view line) {
  LineHead head;
  std::string error;
  if (!absl::ConsumePrefix(&line, "{\"number\":")) return std::nullopt;
  const size_t comma = line.find(',');
  if (!absl::SimpleAtoi(line.substr(0, comma), &head.number)) return std::nullopt;
  line.remove_prefix(std::min(comma, line.size()));
  if (!absl::ConsumePrefix(&line, ",\"time\":\"")) return std::nullopt;
  if (!absl::ParseTime(absl::RFC3339_full, line.substr(0, line.find('"')), &head.time, &error)) {
    return std::nullopt;
  }
  return head;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditFile>> AuditFile::Open(const std::string& path, Store& store,
                                                           const Logger& logger) {
  auto file = absl::WrapUnique(new AuditFile(path, store, logger));
  {
    MutexLock lock(&file->mutex_);
    PHIMAP_RETURN_IF_ERROR(file->ReadPosition());
  }
  const absl::Status copied = file->Copy();
  {
    // What cannot be written now, or read from a database that is away, is copied later: a server
    // that cannot start serves nobody.
    MutexLock lock(&file->mutex_);
    if (!copied.ok() && (file->fd_ < 0 || !absl::IsUnavailable(copied))) return copied;
  }
  store.CopyAuditBy([raw = file.get()] { return raw->Check(); },
                    [raw = file.get()] { raw->Copy().IgnoreError(); });
  file->thread_ = StartThread("copying the audit", [raw = file.get()] { raw->Follow(); });
  return file;
}

AuditFile::AuditFile(std::string path, Store& store, const Logger& logger)
    : path_(std::move(path)), store_(store), logger_(logger) {}

AuditFile::~AuditFile() {
  if (thread_.joinable()) {
    {
      MutexLock lock(&wake_mutex_);
      stopping_ = true;
      wake_.NotifyAll();
    }
    thread_.join();
  }
  if (fd_ >= 0) close(fd_);
}

absl::Status AuditFile::Failed(const std::string& what, int error) const {
  return MakeError(
      absl::StatusCode::kUnavailable, reason::kAuditLogNotWritable, "audit_log",
      absl::StrCat("the audit log ", what, ": ", std::strerror(error),
                   "; this server makes no changes until the audit can be written there"),
      {{"path", path_}}, kRetryMs);
}

absl::Status AuditFile::Check() {
  {
    MutexLock lock(&mutex_);
    if (state_.ok()) state_ = Reopen();
    if (state_.ok()) return absl::OkStatus();
  }
  return Copy();
}

absl::Status AuditFile::Copy() {
  MutexLock lock(&mutex_);
  const absl::Status copied = CopyLocked();
  // If the store cannot be read, it cannot be changed either, and the file is not at fault.
  const std::string reason = DetailOf(copied).value_or(ErrorDetail()).reason;
  if (!copied.ok() && reason != reason::kAuditLogNotWritable) return copied;
  const bool failed = !state_.ok();
  state_ = copied;
  writable_.store(copied.ok(), std::memory_order_relaxed);
  if (failed == !state_.ok()) return state_;
  if (state_.ok()) {
    logger_.Log(LogLevel::kInfo, "audit_log_writable", {{"path", path_}});
  } else {
    logger_.Log(LogLevel::kError, "audit_log_not_writable",
                {{"path", path_}, {"error", std::string(state_.message())}});
  }
  return state_;
}

absl::Status AuditFile::FindPlace(AuditQuery& query) {
  query.oldest_first = true;
  query.bound = position_;
  if (position_ == 0) return absl::OkStatus();
  AuditQuery last = query;
  last.bound = position_ - 1;
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<AuditEntry> found, store_.ListAudit(last, 1));
  if (!found.empty() && found[0].number == position_ && found[0].time == position_time_) {
    return absl::OkStatus();
  }
  // The next entry may also follow on one that is too old to be kept.
  if (!found.empty() && found[0].number > position_ && found[0].time >= position_time_) {
    return absl::OkStatus();
  }
  logger_.Log(LogLevel::kWarning, "audit_log_of_other_history",
              {{"path", path_},
               {"help",
                "the store does not have the last entry of this file: it was restored, or is "
                "another one; what was changed since the time of that entry follows in the file"}});
  query.bound = 0;
  query.from = position_time_ + absl::Microseconds(1);
  return absl::OkStatus();
}

absl::Status AuditFile::CopyLocked() {
  PHIMAP_RETURN_IF_ERROR(Reopen());
  AuditQuery query;
  PHIMAP_RETURN_IF_ERROR(FindPlace(query));
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<AuditEntry> entries,
                            store_.ListAudit(query, kAtOnce));
    if (!entries.empty()) {
      std::string lines;
      for (const AuditEntry& entry : entries) absl::StrAppend(&lines, JsonOf(entry), "\n");
      PHIMAP_RETURN_IF_ERROR(Append(lines));
      position_ = entries.back().number;
      position_time_ = entries.back().time;
      query.bound = position_;
      query.from = absl::InfinitePast();
    }
    if (noted_ != position_) PHIMAP_RETURN_IF_ERROR(WritePosition());
    if (entries.size() < kAtOnce) return absl::OkStatus();
  }
}

absl::Status AuditFile::Reopen() {
  struct stat open_file {};
  struct stat named {};
  const bool same = fd_ >= 0 && fstat(fd_, &open_file) == 0 && stat(path_.c_str(), &named) == 0 &&
                    open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
  if (same) return absl::OkStatus();
  if (fd_ >= 0) close(fd_);
  fd_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) return Failed("cannot be opened", errno);
  if (fstat(fd_, &open_file) != 0) return Failed("cannot be read", errno);
  if (S_ISREG(open_file.st_mode) && flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(std::exchange(fd_, -1));
    return Failed("is written by another server; give each a file of its own", error);
  }
  size_ = open_file.st_size;
  return absl::OkStatus();
}

absl::Status AuditFile::Append(const std::string& lines) {
  size_t written = 0;
  while (written < lines.size()) {
    const ssize_t got = write(fd_, lines.data() + written, lines.size() - written);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      // Takes back half a line, so that the file has whole ones only.
      if (written > 0 && ftruncate(fd_, size_) != 0) return Failed("cannot be truncated", errno);
      return Failed("cannot be written", error);
    }
    written += static_cast<size_t>(got);
  }
  if (fdatasync(fd_) != 0 && errno != EINVAL) {
    const int error = errno;
    // They are written again, once they can be kept.
    if (ftruncate(fd_, size_) != 0) return Failed("cannot be truncated", errno);
    return Failed("cannot be synced", error);
  }
  size_ += static_cast<int64_t>(lines.size());
  return absl::OkStatus();
}

absl::Status AuditFile::ReadPosition() {
  // The position is the last line of a file that may have been renamed since.
  const auto take = [this](absl::string_view line) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const std::optional<LineHead> head = HeadOf(line);
    if (!head.has_value()) return false;
    if (head->number > position_ || head->time > position_time_) {
      position_ = head->number;
      position_time_ = head->time;
    }
    return true;
  };
  if (std::FILE* const file = std::fopen(absl::StrCat(path_, ".position").c_str(), "re")) {
    char text[256] = {};
    const size_t got = std::fread(text, 1, sizeof(text) - 1, file);
    std::fclose(file);
    if (take(absl::string_view(text, got))) noted_ = position_;
  }
  struct stat facts {};
  if (stat(path_.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return absl::OkStatus();
  std::FILE* const file = std::fopen(path_.c_str(), "re");
  if (file == nullptr) return absl::OkStatus();
  constexpr int64_t kTail = 64 << 10;  // more than two lines have
  std::string tail(kTail, '\0');
  size_t got = 0;
  if (fseeko(file, std::max<int64_t>(facts.st_size - kTail, 0), SEEK_SET) == 0) {
    got = std::fread(tail.data(), 1, tail.size(), file);
  }
  std::fclose(file);
  tail.resize(got);
  if (tail.empty()) return absl::OkStatus();
  const size_t end = tail.rfind('\n');
  const std::string half = end == std::string::npos ? tail : tail.substr(end + 1);
  const std::string whole = end == std::string::npos ? "" : tail.substr(0, end);
  // Only a file of this kind may be truncated.
  constexpr absl::string_view kBegin = "{\"number\":";
  const bool torn = absl::StartsWith(half, kBegin) || absl::StartsWith(kBegin, half);
  if (!torn || (!whole.empty() && !take(whole.substr(whole.rfind('\n') + 1)))) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kAuditLogNotWritable,
                     "audit_log",
                     absl::StrCat(path_,
                                  ": this is another file, not a copy of the audit; give "
                                  "the name of one that is, or of none"),
                     {{"path", path_}});
  }
  // Half a line at the end is what a crash left.
  const auto kept = static_cast<off_t>(facts.st_size - static_cast<int64_t>(half.size()));
  if (!half.empty() && truncate(path_.c_str(), kept) != 0) {
    return Failed("cannot be truncated", errno);
  }
  return absl::OkStatus();
}

absl::Status AuditFile::WritePosition() {
  const auto position_failed = [this] {
    return Failed(absl::StrCat("lacks its position, ", path_, ".position, which cannot be written"),
                  errno);
  };
  const std::string path = absl::StrCat(path_, ".position");
  const std::string partial = absl::StrCat(path, ".part");
  const int fd = open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::FILE* const file = fd < 0 ? nullptr : fdopen(fd, "w");
  if (file == nullptr) return position_failed();
  AuditEntry last;
  last.number = position_;
  last.time = position_time_;
  const std::string text = absl::StrCat(JsonOf(last), "\n");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return position_failed();
  if (std::rename(partial.c_str(), path.c_str()) != 0) {
    return position_failed();
  }
  noted_ = position_;
  return absl::OkStatus();
}

void AuditFile::Follow() {
  while (true) {
    {
      MutexLock lock(&wake_mutex_);
      const auto wake = std::chrono::steady_clock::now() + kFollowEvery;
      while (!stopping_ && wake_.WaitUntil(&wake_mutex_, wake)) {
      }
      if (stopping_) return;
    }
    Copy().IgnoreError();
  }
}

}  // namespace phimap
