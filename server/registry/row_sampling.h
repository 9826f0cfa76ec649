// Decides which requests give a row to the test for drift.
#ifndef PHIMAP_SERVER_REGISTRY_ROW_SAMPLING_H_
#define PHIMAP_SERVER_REGISTRY_ROW_SAMPLING_H_

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace phimap {

// At most one row is due in each interval, and none while sampling is off, as it is at first. A
// request that gives no row costs one relaxed load. Times are on the clock of SteadyNow.
// Thread-safe and lock-free.
class RowSampling {
 public:
  // Samples at most one row an interval, the first one at once.
  void Start(absl::Duration interval) {
    interval_.store(absl::ToInt64Nanoseconds(interval), std::memory_order_relaxed);
    int64_t off = kOff;
    due_.compare_exchange_strong(off, 0, std::memory_order_relaxed);
  }
  void Stop() { due_.store(kOff, std::memory_order_relaxed); }
  bool is_on() const { return due_.load(std::memory_order_relaxed) != kOff; }

  // Whether a row is due at `now`. If so, no other is due for an interval.
  bool IsDue(absl::Time now) {
    int64_t due = due_.load(std::memory_order_relaxed);
    if (due == kOff) return false;
    const int64_t at = absl::ToUnixNanos(now);
    return at >= due &&
           due_.compare_exchange_strong(due, at + interval_.load(std::memory_order_relaxed),
                                        std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kOff = std::numeric_limits<int64_t>::max();

  std::atomic<int64_t> due_{kOff};
  std::atomic<int64_t> interval_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_ROW_SAMPLING_H_
