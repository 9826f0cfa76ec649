// The thread that writes the log, and the queue of lines for it.
#ifndef PHIMAP_SERVER_OBSERVE_LOG_WRITER_H_
#define PHIMAP_SERVER_OBSERVE_LOG_WRITER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/string_view.h"

namespace phimap {

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_WRITER_H_
