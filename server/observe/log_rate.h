// Limits the log lines per second of each event.
#ifndef PHIMAP_SERVER_OBSERVE_LOG_RATE_H_
#define PHIMAP_SERVER_OBSERVE_LOG_RATE_H_

#include <array>
#include <chrono>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/observe/log_line.h"
#include "server/sync/mutex.h"

namespace phimap {

// Limits the number of log lines. Each level of each event has its own token bucket. So errors of
// clients, however frequent, cannot displace warnings and errors of the server. Lines of level
// debug are not limited: an operator who turns them on wants all of them.
//
// Requires: each event is a literal in the source, never made from data, because each event has a
// bucket. Thread-safe.
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
  bool Admit(LogLevel level, absl::string_view event, Clock::time_point now);

 private:
  struct Bucket {
    double lines = 0;
    Clock::time_point filled;
  };

  const Options options_;
  Mutex mutex_;
  // Indexed by level, then keyed by event.
  std::array<absl::flat_hash_map<std::string, Bucket>, 5> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_RATE_H_
