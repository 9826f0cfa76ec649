#include "server/kernel_client/grpc_log.h"

#include <poll.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "core/thread/mutex.h"
#include "grpc/support/log.h"

namespace phimap {
namespace {

constexpr size_t kMaxMessageBytes = 1024;
// Prefix of the message that GPR_ASSERT logs before it aborts.
constexpr absl::string_view kAssertion = "assertion failed: ";

struct Target {
  Mutex mutex;
  const Logger* logger ABSL_GUARDED_BY(mutex) = nullptr;
};

// Never destroyed, because gRPC's threads may outlive all other static objects.
Target& TheTarget() {
  static Target* const target = new Target;
  return *target;
}

LogLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return LogLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return LogLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      break;
  }
  return LogLevel::kError;
}

void WriteNow(absl::string_view line) {
  pollfd ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 0) != 1) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void Log(gpr_log_func_args* args) {
  const absl::string_view message = absl::string_view(args->message).substr(0, kMaxMessageBytes);
  const std::string place = absl::StrCat(args->file, ":", args->line);
  if (absl::StartsWith(message, kAssertion)) WriteNow(absl::StrCat(place, ": ", message, "\n"));
  Target& target = TheTarget();
  MutexLock lock(&target.mutex);
  if (target.logger == nullptr) return;
  target.logger->Log(LevelOf(args->severity), "grpc", {{"message", message}, {"source", place}});
}

}  // namespace

GrpcLog::GrpcLog(const Logger& logger) {
  Target& target = TheTarget();
  {
    MutexLock lock(&target.mutex);
    PHIMAP_CHECK(target.logger == nullptr);
    target.logger = &logger;
  }
  gpr_set_log_function(Log);
}

GrpcLog::~GrpcLog() {
  Target& target = TheTarget();
  MutexLock lock(&target.mutex);
  target.logger = nullptr;
}

}  // namespace phimap
