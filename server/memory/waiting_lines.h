// Callers that wait for capacity, in one line for each owner. The lines are served in turns, and
// only as many are woken as get what they wait for.
//
// Thread-safety: all methods may be called from any thread, also from within a Told.
#ifndef PHIMAP_SERVER_MEMORY_WAITING_LINES_H_
#define PHIMAP_SERVER_MEMORY_WAITING_LINES_H_

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "server/sync/mutex.h"

namespace phimap {

class WaitingLines {
 public:
  // Takes the capacity that is waited for, if there is enough of it. Returns whether it was taken.
  // Is called with a lock held, so it must neither block nor call WaitingLines.
  using Attempt = std::function<bool()>;
  // Is called once, when an attempt has succeeded, on the thread of that call or of a concurrent
  // call of Serve, without locks. Must not block.
  using Told = std::function<void()>;

  // A place in a line. The destructor leaves the line. An attempt that has succeeded by then is
  // told nevertheless.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept { *this = std::move(other); }
    Place& operator=(Place&& other) noexcept {
      std::swap(lines_, other.lines_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Place() {
      if (lines_ != nullptr) lines_->Leave(*entry_);
    }

   private:
    friend class WaitingLines;
    struct Entry;
    Place(WaitingLines* lines, std::shared_ptr<Entry> entry)
        : lines_(lines), entry_(std::move(entry)) {}

    WaitingLines* lines_ = nullptr;
    std::shared_ptr<Entry> entry_;
  };

  WaitingLines();
  // REQUIRES: no place is left.
  ~WaitingLines();

  // Makes the attempt. If it fails, joins the line of `owner`, which may be null. Returns whether
  // the attempt succeeded now; `told` is then not called, and `place` not changed.
  bool TakeOrJoin(const void* owner, Attempt attempt, Told told, Place& place)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether somebody waits.
  bool waited_for() const { return waited_for_.load(); }

  // Serves those who wait, because capacity has become free. Costs one atomic load if nobody waits.
  // Capacity that a Told itself frees is given away after that Told has returned, so calls of Told
  // never nest.
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Line;

  // Moves what must be told to `told`. Returns false, and ends the current Serve, if no capacity
  // became free since the last call.
  bool NextRound(std::vector<Told>& told) ABSL_LOCKS_EXCLUDED(mutex_);
  // Serves each line once at most. Returns whether an attempt succeeded.
  bool ServeEach(std::vector<Told>& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Place::Entry& entry) ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(Place::Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether lines_ is not empty. Its operations, like those of the budget's accounting, are
  // sequentially consistent. So if one thread frees capacity while another begins to wait, at least
  // one of the two sees what the other has written.
  std::atomic<bool> waited_for_{false};
  Mutex mutex_;
  // The line that was served last is at the end.
  std::list<Line> lines_ ABSL_GUARDED_BY(mutex_);
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool freed_meanwhile_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MEMORY_WAITING_LINES_H_
