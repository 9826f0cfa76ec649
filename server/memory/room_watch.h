// Tells those who were refused for lack of room that some has become free.
//
// To wait for room without missing it: Wait, try once more, and only if that is refused too, rely
// on the callback. Room that comes free after a refusal is told of after it.
//
// Thread-safety: all methods may be called from any thread, from within a callback too.
#ifndef PHIMAP_SERVER_MEMORY_ROOM_WATCH_H_
#define PHIMAP_SERVER_MEMORY_ROOM_WATCH_H_

#include <atomic>
#include <functional>
#include <vector>

#include "server/sync/mutex.h"

namespace phimap {

class RoomWatch {
 public:
  using Callback = std::function<void()>;

  // Calls `freed` once, at the next Notify, on the thread that calls that or one that calls it at
  // the same time. It must not wait. Dropped uncalled when the watch ends.
  void Wait(Callback freed) ABSL_LOCKS_EXCLUDED(mutex_);

  // Somebody waits, or did until a moment ago.
  bool waited_for() const { return waited_for_.load(); }

  // Room has become free: calls all who wait. Costs a load when nobody does. What a callback frees
  // in its turn is told of after it has returned, so callbacks never nest.
  void Notify() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Moves those who wait out, or ends the round when nothing came free meanwhile.
  bool NextRound(std::vector<Callback>& woken) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether callbacks_ holds any. Sequentially consistent, as are the books of whoever refuses: one
  // of the two threads, the one that frees and the one that waits, sees what the other wrote.
  std::atomic<bool> waited_for_{false};
  Mutex mutex_;
  std::vector<Callback> callbacks_ ABSL_GUARDED_BY(mutex_);
  bool calling_ ABSL_GUARDED_BY(mutex_) = false;
  bool freed_meanwhile_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MEMORY_ROOM_WATCH_H_
