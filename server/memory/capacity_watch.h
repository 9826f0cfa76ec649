// Notifies callers that were refused for lack of capacity when capacity becomes free.
//
// To wait without missing the notification: call Wait, try once more to get the capacity, and rely
// on the callback only if this second attempt is refused too. The callback is called for any
// capacity that becomes free after that refusal.
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

  // Calls `freed` once, at the next Notify, on the thread of that call or of a concurrent call of
  // Notify. `freed` must not block. If the watch is destroyed first, `freed` is not called.
  void Wait(Callback freed) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a caller waits, or waited until a moment ago.
  bool waited_for() const { return waited_for_.load(); }

  // Calls all waiting callbacks, because capacity has become free. Costs one atomic load if no
  // callback waits. Capacity that a callback itself frees is announced after that callback has
  // returned, so callbacks never nest.
  void Notify() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Moves the waiting callbacks to `woken`. Returns false, and ends the current Notify, if no
  // capacity became free since the last call.
  bool NextRound(std::vector<Callback>& woken) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether callbacks_ is not empty. Its operations, like those of the budget's accounting, are
  // sequentially consistent. So if one thread frees capacity while another begins to wait, at least
  // one of the two sees what the other has written.
  std::atomic<bool> waited_for_{false};
  Mutex mutex_;
  std::vector<Callback> callbacks_ ABSL_GUARDED_BY(mutex_);
  bool calling_ ABSL_GUARDED_BY(mutex_) = false;
  bool freed_meanwhile_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MEMORY_CAPACITY_WATCH_H_
