// Limits the lines of one kind per second.
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

// A token bucket for each level of each event, so that clients' errors, however frequent, do not
// displace warnings and errors. Lines of level debug are not limited: an operator who turns them on
// wants all of them.
//
// Requires: events are names in the source, never made from data: a bucket is kept for each.
// Thread-safe.
class LogRate {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    double lines_per_second = 100;
    // Lines at once after a silence.
    double burst = 200;
  };

  LogRate() : LogRate(Options()) {}
  explicit LogRate(const Options& options) : options_(options) {}

  // Whether a line may be written at `now`; if so, it is counted.
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
