// Timers of one event loop: cheap to set and to cancel, since nearly every call sets a deadline
// that never passes.
//
// A wheel has one slot per tick. A timer that is due more than one turn of the wheel from now stays
// in its slot until its turn comes. Setting and cancelling take constant time and do not allocate.
//
// Accuracy: a timer fires up to one tick after its time, never before its time. Not thread-safe.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_TIMER_WHEEL_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_TIMER_WHEEL_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace phimap {

class TimerWheel;

// After this time, a timer whose OnTime found no memory is called again.
inline constexpr absl::Duration kTimerRetry = absl::Milliseconds(100);

// Base class of timers. The destructor cancels the timer.
class Timer {
 public:
  Timer() = default;
  virtual ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Called once, on the loop's thread, at the time that was set. May set the timer again, or
  // destroy it. If it throws std::bad_alloc, it is called again after kTimerRetry, so what it did
  // before must be safe to repeat.
  virtual void OnTime() = 0;

  bool is_set() const { return wheel_ != nullptr; }
  void Cancel();

 private:
  friend class TimerWheel;
  TimerWheel* wheel_ = nullptr;
  // Set while OnTime runs.
  TimerWheel* runs_in_ = nullptr;
  int64_t tick_ = 0;
  Timer* before_ = nullptr;
  Timer* after_ = nullptr;
};

class TimerWheel {
 public:
  static constexpr absl::Duration kTick = absl::Milliseconds(2);

  explicit TimerWheel(absl::Time now) : start_(now) {}
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // Sets `timer`, or moves it if it is set already. InfiniteFuture cancels it.
  void Set(Timer& timer, absl::Time at);
  // Calls OnTime of each timer whose time has come. Returns how many of them found no memory.
  int Advance(absl::Time now);
  // A lower bound of the time of the next timer; InfiniteFuture without timers.
  absl::Time Next() const;

 private:
  friend class Timer;
  static constexpr int kSlots = 4096;
  static constexpr int kWords = kSlots / 64;

  void Insert(Timer& timer);
  void Remove(Timer& timer);
  // Moves the due timers of a slot to `due_`.
  void CollectSlot(int slot);
  int NextSlot(int from) const;

  const absl::Time start_;
  // All ticks up to and including this one have been processed.
  int64_t done_ = 0;
  int64_t count_ = 0;
  std::array<Timer*, kSlots> slots_ = {};
  // Bitmap of the slots that hold timers.
  std::array<uint64_t, kWords> used_ = {};
  // Timers whose time has come but whose OnTime has not been called yet.
  Timer* due_ = nullptr;
  // The timer whose OnTime runs; null if it has been destroyed meanwhile.
  Timer* running_ = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_TIMER_WHEEL_H_
