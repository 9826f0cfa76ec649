// The log: one structured line on stderr for each event that someone may have to explain later.
//
// Example:
//   logger.Log(LogLevel::kInfo, "build_done", {{"mapping", name}, {"rows", rows}});
//   2026-11-20T19:12:51.123Z INFO build_done mapping=letter rows=20000
//
// Guarantees: Log never waits for stderr. Lines go to a queue of at most 1 MiB, and a separate
// thread writes them. Lines of several threads do not mix. A line is dropped if it does not fit
// into the queue, or if its event already has some 100 lines in the same second. Dropped lines are
// counted (LogWriter, LogRate), and a line log_lines_dropped reports their number.
// Requires: never pass data values (rows, features). Pass only names, counts, durations, and errors
// through ErrorForLog. The name of an event is a literal in the source.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_OBSERVE_LOG_H_
#define PHIMAP_SERVER_OBSERVE_LOG_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "server/observe/log_line.h"  // IWYU pragma: export

namespace phimap {

// Limits the log lines per second of each event.
//
// Limits the number of log lines. Each level of each event has its own token bucket, and of what
// known callers do one for each caller. So errors of clients, however frequent, cannot displace
// warnings and errors of the server, nor one caller's those of another. Lines of level debug are
// not limited: an operator who turns them on wants all of them.
//
// Requires: each event is a literal in the source, and each caller a name in the operator's token
// file, never made from data, because each has a bucket. Thread-safe.
class LogRate {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    double lines_per_second = 100;
    // Maximum number of lines at once after a silence.
    double burst = 200;
  };

  LogRate() : LogRate(Options()) {}
  explicit LogRate(const Options& options) : options_(options) {}

  // Returns whether a line may be written at `now`, and counts the line if so.
  bool Admit(LogLevel level, absl::string_view event, absl::string_view caller,
             Clock::time_point now);

 private:
  struct Bucket {
    double lines = 0;
    Clock::time_point filled;
  };

  const Options options_;
  Mutex mutex_;
  // Indexed by level, then keyed by event and caller.
  std::array<absl::flat_hash_map<std::string, Bucket>, 5> buckets_ ABSL_GUARDED_BY(mutex_);
};

// The thread that writes the log, and the queue of lines for it.
//
// Numbers of dropped lines, by cause.
struct LogDrops {
  // The queue was full.
  int64_t queue_full = 0;
  // The event exceeded its rate.
  int64_t rate = 0;
  // The descriptor could not be written: its reader has gone, its disk is full, or the process
  // ended first.
  int64_t write_failed = 0;

  friend bool operator==(const LogDrops& a, const LogDrops& b) {
    return a.queue_full == b.queue_full && a.rate == b.rate && a.write_failed == b.write_failed;
  }
};

// Guarantees: Write never waits for the descriptor. If the reader of a pipe is slow, the queue
// fills up, and further lines are dropped and counted. Once the queue has capacity again, a line
// reports the dropped lines, at most once per `tell_interval`. Lines are written in order. A line
// that fits into one atomic write to a pipe (4 KiB) is not split. The destructor writes the queued
// lines, for at most `end_wait`. The descriptor's flags are never changed, because other processes
// share them. Thread-safe.
class LogWriter {
 public:
  struct Options {
    int64_t max_queued_bytes = int64_t{1} << 20;
    std::chrono::milliseconds tell_interval{1000};
    std::chrono::milliseconds end_wait{200};
  };
  // Returns the line that reports dropped lines.
  using DropLine = std::function<std::string(absl::string_view reason, int64_t count)>;

  // Does not own `descriptor`. If the descriptor is blocked when the writer is destroyed, a thread
  // is left behind that may still use it.
  LogWriter(int descriptor, DropLine drop_line)
      : LogWriter(descriptor, std::move(drop_line), Options()) {}
  LogWriter(int descriptor, DropLine drop_line, const Options& options);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void Write(absl::string_view line);
  // Counts a line that was not written because of its rate.
  void DropForRate();
  LogDrops drops() const;

 private:
  struct State;

  // Shared with the thread, which may outlive this object.
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

// Thread-safe, also while the level or the sampling is changed.
class Logger {
 public:
  using Sink = std::function<void(absl::string_view line)>;

  // Writes lines of `level` and above to stderr. The destructor waits at most 200 ms for them to be
  // written.
  explicit Logger(LogLevel level, LogFormat format = LogFormat::kText);
  // Passes each line at once to `sink`, without limits. `sink` must be thread-safe.
  Logger(LogLevel level, Sink sink, LogFormat format = LogFormat::kText);

  LogLevel level() const { return level_.load(std::memory_order_relaxed); }
  // From now on, lines of `level` and above are written.
  void SetLevel(LogLevel level) { level_.store(level, std::memory_order_relaxed); }
  bool Enabled(LogLevel level) const { return level >= this->level(); }

  // From now on, one in `calls` successful calls is to be logged; 0 means none. Failed calls are
  // always logged.
  void SetCallSampling(int64_t calls) { sampling_.store(calls, std::memory_order_relaxed); }
  // Returns whether the successful call that asks is in the sample: the first is, and then each
  // time the next after as many as SetCallSampling says.
  bool SamplesCall() const;

  void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) const;
  // Returns the number of lines dropped so far.
  LogDrops drops() const;

 private:
  std::atomic<LogLevel> level_;
  std::atomic<int64_t> sampling_{0};
  // Successful calls since the start that were asked for, while there is a sampling.
  mutable std::atomic<int64_t> calls_{0};
  const LogFormat format_;
  const Sink sink_;
  // Writes to stderr; null if there is another sink.
  const std::unique_ptr<LogWriter> writer_;
  const std::unique_ptr<LogRate> rate_;
};

// Lets a line be logged at most once in ten seconds, so that a flood of clients does not fill the
// log.
//
// Thread-safe.
class Seldom {
 public:
  // Returns true if the last call that returned true was ten seconds ago or there was none.
  bool Now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    int64_t quiet_until = quiet_until_.load(std::memory_order_relaxed);
    if (now.count() < quiet_until) return false;
    return quiet_until_.compare_exchange_strong(quiet_until, (now + kQuiet).count());
  }

 private:
  static constexpr std::chrono::steady_clock::duration kQuiet = std::chrono::seconds(10);
  std::atomic<int64_t> quiet_until_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_H_
