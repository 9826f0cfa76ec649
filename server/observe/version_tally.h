// Counts of a version while it is in memory. Clients request them by an RPC. (/metrics has labels
// for only a limited number of versions.)
#ifndef PHIMAP_SERVER_OBSERVE_VERSION_TALLY_H_
#define PHIMAP_SERVER_OBSERVE_VERSION_TALLY_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace phimap {

// A number of events and their total duration. Thread-safe and lock-free. Count and time are each
// exact, but may be read at different instants.
class TimeTally {
 public:
  void Add(absl::Duration time) {
    count_.fetch_add(1, std::memory_order_relaxed);
    nanoseconds_.fetch_add(absl::ToInt64Nanoseconds(time), std::memory_order_relaxed);
  }
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  absl::Duration total() const {
    return absl::Nanoseconds(nanoseconds_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<int64_t> count_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

// Thread-safe and lock-free. Times are on the clock of SteadyNow.
class VersionTally {
 public:
  // Records that a request ended at `now`. `batch_began` is InfinitePast if the request got into no
  // batch.
  void RequestEnded(bool ok, int64_t rows, absl::Time received, absl::Time batch_began,
                    absl::Time now) {
    (ok ? answered_ : failed_).Add(now - received);
    last_request_.store(absl::ToUnixNanos(now), std::memory_order_relaxed);
    if (!ok || batch_began == absl::InfinitePast()) return;
    rows_.fetch_add(rows, std::memory_order_relaxed);
    queued_.Add(batch_began - received);
    computed_.Add(now - batch_began);
  }
  // Records that the engine ran once, for one or more requests.
  void BatchComputed() { batches_.fetch_add(1, std::memory_order_relaxed); }

  const TimeTally& answered() const { return answered_; }
  const TimeTally& failed() const { return failed_; }
  // Time from arrival to the start of the batch, and from there to the features.
  const TimeTally& queued() const { return queued_; }
  const TimeTally& computed() const { return computed_; }
  int64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  int64_t batches() const { return batches_.load(std::memory_order_relaxed); }
  // Time at which the last request ended; InfinitePast if there was none.
  absl::Time last_request() const {
    const int64_t nanoseconds = last_request_.load(std::memory_order_relaxed);
    return nanoseconds == 0 ? absl::InfinitePast() : absl::FromUnixNanos(nanoseconds);
  }

 private:
  TimeTally answered_;
  TimeTally failed_;
  TimeTally queued_;
  TimeTally computed_;
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> batches_{0};
  std::atomic<int64_t> last_request_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_VERSION_TALLY_H_
