// The log: one structured line on stderr for each event that someone may have to explain later.
//
// Example:
//   logger.Log(LogLevel::kInfo, "build_done", {{"mapping", name}, {"rows", absl::StrCat(rows)}});
//   2026-11-20T19:12:51.123Z INFO build_done mapping=letter rows=20000
//
// Guarantees: Log never waits for stderr. Lines go to a queue of at most 1 MiB and are written by a
// thread; lines that do not fit, and more than some 100 lines a second of one event, are dropped
// and counted (log_writer.h, log_rate.h), and a line log_lines_dropped reports them. Lines of
// several threads do not mix. Never pass data values (rows, features): only names, counts,
// durations and errors by ErrorForLog. An event is a name in the source.
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

// The parts of an error that a line may contain. Its message is kept when it speaks of this server
// (store, memory, shutting down); a message about a client's mistake quotes the client's data, so
// only the field of the request is logged. Missing parts are "none".
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

  // Writes lines of `level` and above to stderr. The destructor waits for at most 200 ms until they
  // are written.
  explicit Logger(LogLevel level, LogFormat format = LogFormat::kText);
  // Writes each line at once and without limit to `sink`, which must be safe to call from any
  // thread.
  Logger(LogLevel level, Sink sink);

  LogLevel level() const { return level_; }
  bool Enabled(LogLevel level) const { return level >= level_; }
  void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) const;
  // Lines that were not written so far.
  LogDrops drops() const;

 private:
  const LogLevel level_;
  const LogFormat format_ = LogFormat::kText;
  const Sink sink_;
  // Writer to stderr; null for another sink, and when nothing is logged.
  const std::unique_ptr<LogWriter> writer_;
  const std::unique_ptr<LogRate> rate_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_H_
