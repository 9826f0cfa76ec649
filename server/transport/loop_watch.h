// Monitors how long event loops work without polling their sockets.
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
  // 15 to 30 seconds. It must outlive the loops.
  explicit LoopWatch(prometheus::Gauge* longest_gap) : longest_gap_(longest_gap) {}

  // Starts to watch `loop`. Call it before the loop serves.
  void Add(EventLoop& loop);

  // Longest time for which any loop has worked without polling. If this is several seconds, the
  // clients of that loop are not being served.
  absl::Duration BusyFor() const;
  // Total busy time of all loops since their start.
  absl::Duration BusyTime() const;
  // How often work of a loop found no memory.
  int64_t MemoryFailures() const;
  int count() const;

 private:
  class GapTimer;

  prometheus::Gauge* const longest_gap_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<EventLoop>> loops_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_LOOP_WATCH_H_
