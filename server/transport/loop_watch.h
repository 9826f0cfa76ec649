// Whether event loops get round to their sockets.
#ifndef PHIMAP_SERVER_TRANSPORT_LOOP_WATCH_H_
#define PHIMAP_SERVER_TRANSPORT_LOOP_WATCH_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "prometheus/gauge.h"
#include "server/sync/mutex.h"
#include "server/transport/event_loop.h"

namespace phimap {

// Thread-safe.
class LoopWatch {
 public:
  // `longest_gap` shows the longest time between two polls of a loop, in seconds, during the last
  // 15 to 30 seconds; it outlives the loops.
  explicit LoopWatch(prometheus::Gauge* longest_gap) : longest_gap_(longest_gap) {}

  // Before the loop serves.
  void Add(EventLoop& loop);

  // Time for which the slowest loop has been at work without a poll; seconds mean that no client is
  // served.
  absl::Duration BusyFor() const;
  // Busy time of all loops together, since they began.
  absl::Duration BusyTime() const;
  int count() const;

 private:
  class GapTimer;

  prometheus::Gauge* const longest_gap_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<EventLoop>> loops_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_LOOP_WATCH_H_
