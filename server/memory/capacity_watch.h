// Notifies callers that were refused for lack of capacity when capacity becomes free.
//
// To wait without missing the notification: call Wait, try once more, and rely on the callback only
// if that is refused too. Wait's callback covers all capacity that is freed after the refusal.
//
// Thread-safety: all methods may be called from any thread, also from within a callback.
#ifndef PHIMAP_SERVER_MEMORY_CAPACITY_WATCH_H_
#define PHIMAP_SERVER_MEMORY_CAPACITY_WATCH_H_

#include <atomic>
#include <functional>
#include <vector>

#include "server/sync/mutex.h"

namespace phimap {

class CapacityWatch {
 public:
  using Callback = std::function<void()>;

  // Calls `freed` once, at the next Notify, on the thread that calls that or one that calls it at
  // the same time. `freed` must not wait. Dropped uncalled when the watch ends.
  void Wait(Callback freed) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a caller waits, or did until a moment ago.
  bool waited_for() const { return waited_for_.load(); }

  // Calls all waiting callbacks, because capacity has become free. Costs one load if there are
  // none. Memory that a callback releases is announced after it has returned, so callbacks never
  // nest.
  void Notify() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Moves the waiting callbacks out, or ends the round if no capacity became free meanwhile.
  bool NextRound(std::vector<Callback>& woken) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether callbacks_ holds any. Sequentially consistent, as is the accounting of the budget: of
  // the thread that frees and the thread that waits, one sees the other's write.
  std::atomic<bool> waited_for_{false};
  Mutex mutex_;
  std::vector<Callback> callbacks_ ABSL_GUARDED_BY(mutex_);
  bool calling_ ABSL_GUARDED_BY(mutex_) = false;
  bool freed_meanwhile_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MEMORY_CAPACITY_WATCH_H_
