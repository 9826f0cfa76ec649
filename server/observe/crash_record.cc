#include "server/observe/crash_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace phimap {
namespace {

// The record is one line, always of this size: "running 0000000000000000002".
constexpr char kFormat[] = "%s %019" PRId64 "\n";
constexpr char kRunning[] = "running";
constexpr char kStopped[] = "stopped";
constexpr size_t kBytes = 28;

}  // namespace

CrashRecord::CrashRecord(const std::string& path, const Logger& logger)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640)) {
  char text[kBytes + 1] = {};
  char state[sizeof(kRunning)] = {};
  if (file_ >= 0 && pread(file_, text, kBytes, 0) == static_cast<ssize_t>(kBytes)) {
    // Anything else that a damaged record says counts as no crash.
    if (sscanf(text, "%7s %" SCNd64, state, &crashes_) != 2 || crashes_ < 0) crashes_ = 0;
  }
  if (std::strcmp(state, kRunning) == 0) {
    ++crashes_;
    logger.Log(LogLevel::kWarning, "crashed_before",
               {{"crashes", crashes_},
                {"help",
                 "the process before this one ended without shutting down: look at its last lines, "
                 "at its exit code, and in the kernel's log for \"Out of memory\""}});
  }
  if (!Write(/*running=*/true)) {
    logger.Log(LogLevel::kWarning, "crashes_not_recorded",
               {{"path", path},
                {"error", std::generic_category().message(errno)},
                {"help", "if this process crashes, phimap_crashes_total will not count it"}});
  }
}

CrashRecord::~CrashRecord() {
  Write(/*running=*/false);
  if (file_ >= 0) close(file_);
}

bool CrashRecord::Write(bool running) const {
  char text[kBytes + 1];
  std::snprintf(text, sizeof(text), kFormat, running ? kRunning : kStopped, crashes_);
  return file_ >= 0 && pwrite(file_, text, kBytes, 0) == static_cast<ssize_t>(kBytes);
}

}  // namespace phimap
