// The log: one structured line on stderr for each event that someone may have to explain later.
//
// Example:
//   logger.Log(LogLevel::kInfo, "build_done", {{"mapping", name}, {"rows", absl::StrCat(rows)}});
//   2026-11-20T19:12:51.123Z INFO build_done mapping=letter rows=20000
//
// Guarantees: a line is written with one call, so lines of several threads do not mix. Never pass
// data values (rows, features): only names, counts, durations and errors by ErrorForLog.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_OBSERVE_LOG_H_
#define PHIMAP_SERVER_OBSERVE_LOG_H_

#include <functional>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// "debug", "info", "warning", "error" or "off".
absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text);

struct LogField {
  absl::string_view key;
  std::string value;
};

// One line, newline included: values are quoted when they hold more than letters, digits and a few
// signs.
std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view event,
                          std::initializer_list<LogField> fields);

// What a line may say of an error. Its message is kept when it speaks of this server (store,
// memory, shutting down); the message of what a client sent wrong quotes the client's data, and a
// field of the request in its place tells where to look. What is not there is "none".
struct LoggedError {
  std::string code;
  std::string reason;
  std::string field;
  std::string message;
};
LoggedError ErrorForLog(const absl::Status& error);

class Logger {
 public:
  using Sink = std::function<void(absl::string_view line)>;

  // Writes lines of `level` and above to stderr.
  explicit Logger(LogLevel level);
  // The same to `sink`, which must be safe to call from any thread.
  Logger(LogLevel level, Sink sink);

  bool Enabled(LogLevel level) const { return level >= level_; }
  void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) const;

 private:
  const LogLevel level_;
  const Sink sink_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_H_
