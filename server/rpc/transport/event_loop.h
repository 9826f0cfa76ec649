// A loop on one thread that waits for sockets, timers and tasks of other threads, and calls the
// objects concerned.
//
// A round of the loop reads until nothing is readable, a quantum of work is staged, kEventsPerRound
// events were handled or the round took 1 ms. Then strangers are read for another millisecond, in
// turns. At last the loop computes the staged work and lets connections send. Without these limits
// a few busy connections, or many of strangers, would delay every answer.
//
// Thread-safety: Post, Stop, OnThisThread, TakeLongestGap, BusyFor and BusyTime may be called from
// any thread; everything else on the loop's thread only.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_EVENT_LOOP_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_EVENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "server/rpc/transport/timer_wheel.h"
#include "server/schedule/compute_pool.h"

namespace phimap {

// Spinning saves the caller the time that waking a thread takes, but it occupies a core. It pays if
// this process does not need the core, or if the next event is near. While a build or long work of
// the pool runs, spinning would take the core from that work. The loop would also exceed its share
// of CPU time and have to wait when it wakes (on two cores with a build running, this wait was a
// third of the p90 latency of Transforms).
class SpinPolicy {
 public:
  // Clock readings in ns: wall time, and the CPU time of the process and of the loop's thread.
  struct Times {
    int64_t wall = 0;
    int64_t process = 0;
    int64_t thread = 0;
  };

  // The loop always spins while this process uses at most this share of the other cores.
  static constexpr double kMostInUse = 0.25;
  // If the process uses more, the loop spins only if at least this share of the recent waits (about
  // 16) ended within the time of a spin.
  static constexpr double kLeastHits = 0.75;
  // Interval between two readings of the clocks. The CPU time of other threads is updated only at
  // the timer ticks of their cores, which may be 10 ms apart.
  static constexpr int64_t kWindowNs = 50'000'000;

  // `cores`: number of cores that the process may use, at least 1.
  explicit SpinPolicy(int cores) : others_(cores > 1 ? cores - 1 : 1) {}

  // Reads the clocks. The field `thread` is the CPU time of the calling thread.
  static Times Now();

  // Whether NoteTimes is due.
  bool IsDue(int64_t wall_ns) const { return wall_ns - last_.wall >= kWindowNs; }
  void NoteTimes(const Times& now);
  // To be called after each wait, whether the loop spun or slept. `hit`: the wait ended within the
  // time of a spin.
  void NoteWait(bool hit) { hits_ += ((hit ? 1.0 : 0.0) - hits_) / 16; }
  bool pays() const { return core_free_ || hits_ >= kLeastHits; }

 private:
  const int others_;
  Times last_;
  bool core_free_ = true;
  double hits_ = 0;
};

// Receives the events of a file descriptor.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // `events`: bits as epoll_wait reports them, or 0 if AtEndOfRound or Again requested the call.
  virtual void OnReady(uint32_t events) = 0;
  // Called when OnReady has thrown std::bad_alloc, or epoll can no longer watch the descriptor
  // because the system lacks memory for it. The object ends what it cannot go on with; it must not
  // throw.
  virtual void OnOutOfMemory() = 0;
  // Whether the events of this object come after those of all others.
  virtual bool stranger() const { return false; }

 private:
  friend class EventLoop;
  // The events that are watched, of this descriptor.
  int fd_ = -1;
  uint32_t watched_ = 0;
  // Whether the object is in the loop's queue of strangers, and the events that it waits for there.
  bool in_queue_ = false;
  uint32_t late_events_ = 0;
  // Whether the object is in the loop's list `at_end_`, and whether it is in the list `again_`.
  bool at_end_ = false;
  bool again_ = false;
};

// Work that is collected while the loop reads, and run at the end of the round.
class StagedWork {
 public:
  virtual ~StagedWork() = default;
  virtual bool empty() const = 0;
  // Whether a quantum of work is staged, so that the round should end.
  virtual bool full() const = 0;
  // May throw std::bad_alloc. The work is then no longer collected.
  virtual void Run() = 0;
};

class EventLoop : public std::enable_shared_from_this<EventLoop> {
 public:
  static constexpr int kEventsPerRound = 64;
  using Task = std::function<void()>;

  EventLoop();
  // REQUIRES: Stop was called and the thread that ran it has returned from Run.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs until Stop.
  void Run();
  void Stop();

  // Runs `task` on the loop's thread soon. After the loop has ended, tasks are dropped. A thread
  // that may post after the end must hold its own shared_ptr to the loop. A task that throws
  // std::bad_alloc ends there, so one that others wait for must catch it.
  void Post(Task task) ABSL_LOCKS_EXCLUDED(mutex_);
  bool OnThisThread() const { return thread_.load() == std::this_thread::get_id(); }

  // Watches `fd` for the epoll `events`, and calls `pollable` for each until Remove. Returns false
  // if the system has no memory for it; then nothing is watched.
  [[nodiscard]] bool Add(int fd, uint32_t events, Pollable& pollable);
  [[nodiscard]] bool Change(int fd, uint32_t events, Pollable& pollable);
  void Remove(int fd, Pollable& pollable);

  // Calls `pollable.OnReady(0)` once at the end of this round, before the loop waits. No-op if that
  // is scheduled already.
  void AtEndOfRound(Pollable& pollable);
  // Calls `pollable.OnReady(0)` once, after the events of the current or next poll. For an object
  // that has more work than its share of a round.
  void Again(Pollable& pollable);
  // Cancels all pending calls of `pollable`: AtEndOfRound, Again and events not handled yet.
  void Forget(Pollable& pollable);

  // Sets the staged work, or none if null. `staged` is not owned.
  void SetStagedWork(StagedWork* staged) { staged_ = staged; }

  TimerWheel& timers() { return timers_; }
  // Keeps `timer` alive as long as the loop.
  void Keep(std::unique_ptr<Timer> timer) { kept_.push_back(std::move(timer)); }
  // Time of the last poll; constant while events are handled.
  absl::Time now() const { return now_; }

  // How often work of this loop found no memory. Thread-safe.
  int64_t memory_failures() const { return memory_failures_.load(std::memory_order_relaxed); }
  void NoteMemoryFailures(int count) {
    memory_failures_.fetch_add(count, std::memory_order_relaxed);
  }

  // Returns the longest time between two polls since the last call of this function.
  absl::Duration TakeLongestGap();
  // Time since the loop last polled; zero while it waits for events.
  absl::Duration BusyFor() const;
  // Total time that the loop has spent working instead of waiting.
  absl::Duration BusyTime() const {
    return absl::Nanoseconds(busy_time_.load(std::memory_order_relaxed));
  }

 private:
  // Waits for events at most until `wait_until` and handles them; returns their number.
  int Poll(absl::Time wait_until);
  int TimeoutMs(absl::Time wait_until) const;
  void NotePoll(bool waits);
  void RunPosted() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunAgain();
  // Calls strangers, the first come first, until their time in this round is used up.
  void RunStrangers();
  void Queue(Pollable& stranger, uint32_t events);
  // Has epoll report the events of `pollable`: once, if it is a stranger, so that one which waits
  // for its turn is not reported over and over, before others.
  bool Arm(int operation, Pollable& pollable);
  // Hands events to `pollable`: a stranger waits for its turn.
  void Deliver(Pollable& pollable, uint32_t events);
  // Calls pollable.OnReady, and OnOutOfMemory if that finds no memory.
  void Call(Pollable& pollable, uint32_t events);
  void Failed(Pollable& pollable);
  void EndRound();
  void DrainWakeup() const;

  const int epoll_;
  const int wakeup_;
  TimerWheel timers_;
  // Whether events came after idle_since_ was set. idle_since_ is when the loop last ran out of
  // events, in nanoseconds of the steady clock.
  bool had_events_ = false;
  int64_t idle_since_ = 0;
  SpinPolicy spin_{CpuBudgetOfThisProcess()};
  std::vector<std::unique_ptr<Timer>> kept_;
  absl::Time now_;
  StagedWork* staged_ = nullptr;
  std::atomic<bool> stopped_{false};
  std::atomic<std::thread::id> thread_{};
  // Descriptors that are watched. The lists below have room for them all, so that only Add needs
  // memory.
  size_t watched_ = 0;
  std::vector<Pollable*> at_end_;
  std::vector<Pollable*> again_;
  std::vector<Pollable*> called_again_;
  // The events that are being handled. Forget(pollable) sets the pointers to `pollable` in this
  // list to null.
  std::vector<std::pair<Pollable*, uint32_t>> handling_;
  // Strangers that wait for their turn; null if forgotten. `turn_` is the one whose turn it is.
  std::deque<Pollable*> strangers_;
  Pollable* turn_ = nullptr;

  // Nanoseconds; written by the loop's thread only.
  std::atomic<int64_t> busy_time_{0};
  // Time of the last poll in nanoseconds of the steady clock; 0 while the loop waits.
  std::atomic<int64_t> busy_since_{0};
  std::atomic<int64_t> longest_gap_{0};
  std::atomic<int64_t> memory_failures_{0};

  Mutex mutex_;
  std::vector<Task> posted_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Task> running_;
};

// Monitors how long event loops work without polling their sockets.
//
// Thread-safe.
class LoopWatch {
 public:
  LoopWatch() = default;

  // Starts to watch `loop`. Call it before the loop serves.
  void Add(EventLoop& loop);

  // Longest time for which any loop has worked without polling. If this is several seconds, the
  // clients of that loop are not being served.
  absl::Duration BusyFor() const;
  // Longest time between two polls of any loop that worked meanwhile: during the last 15 to 30
  // seconds, or until now.
  absl::Duration LongestGap() const;
  // Total busy time of all loops since their start.
  absl::Duration BusyTime() const;
  // How often work of a loop found no memory.
  int64_t MemoryFailures() const;
  int count() const;

 private:
  class GapTimer;
  struct Watched {
    std::shared_ptr<EventLoop> loop;
    // Nanoseconds; written by the loop's timer every second.
    std::shared_ptr<std::atomic<int64_t>> longest_gap;
  };

  mutable Mutex mutex_;
  std::vector<Watched> loops_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_EVENT_LOOP_H_
