// One thread that waits for sockets, timers and other threads, and calls the objects concerned.
//
// A turn of the loop reads until nothing is readable, a quantum of work is staged, or
// kEventsPerTurn events were handled; then it computes the staged work and lets connections send.
// Without the cap a few busy connections starve every answer.
//
// Thread-safety: Post, Stop and the observers of polls from any thread; everything else on the
// loop's thread alone.
#ifndef PHIMAP_SERVER_TRANSPORT_EVENT_LOOP_H_
#define PHIMAP_SERVER_TRANSPORT_EVENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/schedule/cpu_budget.h"
#include "server/sync/mutex.h"
#include "server/transport/spin_policy.h"
#include "server/transport/timer_wheel.h"

namespace phimap {

// Receives the events of a descriptor.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // `events` as epoll_wait has them.
  virtual void OnReady(uint32_t events) = 0;

 private:
  friend class EventLoop;
  // In the loop's lists.
  bool at_end_ = false;
  bool again_ = false;
};

// Work that is gathered while there is something to read, and done before the loop waits again.
class StagedWork {
 public:
  virtual ~StagedWork() = default;
  virtual bool empty() const = 0;
  // Whether a quantum is staged.
  virtual bool full() const = 0;
  virtual void Run() = 0;
};

class EventLoop : public std::enable_shared_from_this<EventLoop> {
 public:
  static constexpr int kEventsPerTurn = 64;
  using Task = std::function<void()>;

  EventLoop();
  // REQUIRES: Stop was called and the thread that ran it has returned from Run.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs until Stop.
  void Run();
  void Stop();

  // Runs `task` on the loop's thread soon. After the loop has ended, tasks are dropped: threads
  // that may post then hold their own pointer to the loop.
  void Post(Task task) ABSL_LOCKS_EXCLUDED(mutex_);
  bool OnThisThread() const { return thread_.load() == std::this_thread::get_id(); }

  // `events` of epoll; `pollable` is called until Remove.
  void Add(int fd, uint32_t events, Pollable& pollable);
  void Change(int fd, uint32_t events, Pollable& pollable);
  void Remove(int fd, Pollable& pollable);

  // At the end of this turn, before the loop waits; once, however often it is asked for. `pollable`
  // gets OnReady(0).
  void AtEndOfTurn(Pollable& pollable);
  // Schedules `pollable` for the next turn, after others: for objects with more work than their
  // share.
  void Again(Pollable& pollable);
  // Ends both kinds of calls above for `pollable`.
  void Forget(Pollable& pollable);

  // Sets the staged work, which is not owned; null removes it.
  void SetStagedWork(StagedWork* staged) { staged_ = staged; }

  TimerWheel& timers() { return timers_; }
  // A timer that lives as long as the loop.
  void Keep(std::unique_ptr<Timer> timer) { kept_.push_back(std::move(timer)); }
  // The time of this turn: it is constant while events are handled.
  absl::Time now() const { return now_; }

  // The longest time between two polls since it was last asked.
  absl::Duration TakeLongestGap();
  // Time since the loop last polled, while it is not waiting for events.
  absl::Duration BusyFor() const;
  // The time that the loop was at work, since it began.
  absl::Duration BusyTime() const {
    return absl::Nanoseconds(busy_time_.load(std::memory_order_relaxed));
  }

 private:
  // Polls and handles; returns how many events there were.
  int Poll(absl::Time wait_until);
  int TimeoutMs(absl::Time wait_until) const;
  void NotePoll(bool waits);
  void RunPosted() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunAgain();
  void EndTurn();
  void DrainWakeup() const;

  const int epoll_;
  const int wakeup_;
  TimerWheel timers_;
  // Something was handled since idle_since_, in nanoseconds of the steady clock, was set.
  bool had_events_ = false;
  int64_t idle_since_ = 0;
  SpinPolicy spin_{CpuBudgetOfThisProcess()};
  std::vector<std::unique_ptr<Timer>> kept_;
  absl::Time now_;
  StagedWork* staged_ = nullptr;
  std::atomic<bool> stopped_{false};
  std::atomic<std::thread::id> thread_{};
  std::vector<Pollable*> at_end_;
  std::vector<Pollable*> again_;
  // The events that are being handled; Remove takes its own out.
  std::vector<std::pair<Pollable*, uint32_t>> handling_;

  // Nanoseconds; the loop alone adds to it.
  std::atomic<int64_t> busy_time_{0};
  // Nanoseconds of the steady clock; 0 while it waits.
  std::atomic<int64_t> busy_since_{0};
  std::atomic<int64_t> longest_gap_{0};

  Mutex mutex_;
  std::vector<Task> posted_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Task> running_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_EVENT_LOOP_H_
