// The log: one structured line on stderr for each event that someone may have to explain later.
//
// Example:
//   logger.Log(LogLevel::kInfo, "build_done", {{"mapping", name}, {"rows", absl::StrCat(rows)}});
//   2026-11-20T19:12:51.123Z INFO build_done mapping=letter rows=20000
//
// Guarantees: Log never waits for stderr. Lines go to a queue of at most 1 MiB, and a separate
// thread writes them. Lines of several threads do not mix. A line is dropped if it does not fit
// into the queue, or if its event already has some 100 lines in the same second. Dropped lines are
// counted (log_writer.h, log_rate.h), and a line log_lines_dropped reports their number.
// Requires: never pass data values (rows, features). Pass only names, counts, durations, and errors
// through ErrorForLog. The name of an event is a literal in the source.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_OBSERVE_LOG_H_
#define PHIMAP_SERVER_OBSERVE_LOG_H_

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/observe/log_line.h"
#include "server/observe/log_rate.h"
#include "server/observe/log_writer.h"

namespace phimap {

// The parts of an error that may be logged. The message is kept only if it is about this server
// (store, memory, shutdown). A message about a client's mistake quotes the client's data, so it is
// replaced by the field of the request. Missing parts are "none".
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

  // Writes lines of `level` and above to stderr. The destructor waits at most 200 ms for them to be
  // written.
  explicit Logger(LogLevel level, LogFormat format = LogFormat::kText);
  // Passes each line at once to `sink`, without limits. `sink` must be thread-safe.
  Logger(LogLevel level, Sink sink);

  LogLevel level() const { return level_; }
  bool Enabled(LogLevel level) const { return level >= level_; }
  void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) const;
  // Returns the number of lines dropped so far.
  LogDrops drops() const;

 private:
  const LogLevel level_;
  const LogFormat format_ = LogFormat::kText;
  const Sink sink_;
  // Writes to stderr; null if there is another sink or nothing is logged.
  const std::unique_ptr<LogWriter> writer_;
  const std::unique_ptr<LogRate> rate_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_H_
