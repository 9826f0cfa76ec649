// The thread that writes the log, and the lines that wait for it.
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

// Lost lines, by cause.
struct LogDrops {
  // The lines that wait took all the memory that they may.
  int64_t queue_full = 0;
  // More of one event than may be written in a second.
  int64_t rate = 0;
  // The descriptor could not be written: its reader has gone, its disk is full, or the process
  // ended first.
  int64_t write_failed = 0;

  friend bool operator==(const LogDrops& a, const LogDrops& b) {
    return a.queue_full == b.queue_full && a.rate == b.rate && a.write_failed == b.write_failed;
  }
};

// Guarantees: Write never waits for the descriptor: a pipe without a reader fills the queue, and
// further lines are dropped and counted. Lines are written in the order in which they came, and no
// line is divided that a pipe takes in one piece (4 KiB). Lines that were dropped are told of when
// there is room again, at most once in `tell_interval`. The destructor writes the waiting lines,
// for `end_wait` at most. Nothing here changes the descriptor: its flags are shared with other
// processes. Thread-safe.
class LogWriter {
 public:
  struct Options {
    int64_t max_queued_bytes = int64_t{1} << 20;
    std::chrono::milliseconds tell_interval{1000};
    std::chrono::milliseconds end_wait{200};
  };
  // The line that tells of lines that were dropped.
  using DropLine = std::function<std::string(absl::string_view reason, int64_t count)>;

  // Does not own `descriptor`. If it is blocked when the writer is destroyed, a thread is left
  // behind that may still use it.
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

  // The thread shares it, and may outlive this.
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_WRITER_H_
