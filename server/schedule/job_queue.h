// A queue of pieces of work of builds and evaluations, and the few threads that run them.
//
// A piece belongs to a job. When the job ends, its waiting piece is withdrawn from the queue. So at
// most one piece for each unfinished job is queued, however often clients begin and cancel builds.
// No piece of an ended build waits behind a long one.
//
// Pieces run at the lowest priority. Between two checkpoints, a piece may occupy a core for
// milliseconds, but Transform calls and event loops get the core when they need it. At this
// priority, a thread that shares a core with a piece has to wait for the piece only if it has
// already used more than 98 % of the core's time. On a core that other threads never leave, a piece
// gets 1.5 % of the time. The server's own calls do leave the core: next to 16 callers, a build of
// 0.6 s takes 1.3 s.
//
// Guarantees: pieces start in the order of Submit. The destructor runs the waiting pieces and then
// joins the threads.
// Thread-safety: all methods may be called from any thread, also from within a piece.
#ifndef PHIMAP_SERVER_SCHEDULE_JOB_QUEUE_H_
#define PHIMAP_SERVER_SCHEDULE_JOB_QUEUE_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/thread/mutex.h"

namespace phimap {

class JobQueue {
 public:
  using Task = std::function<void()>;

  // Niceness of the threads, from 0 to 19.
  static constexpr int kNiceness = 19;

  explicit JobQueue(int threads);
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  // Queues a piece. `job` owns the piece and is kept alive while it waits. REQUIRES: no piece of
  // `job` waits.
  void Submit(std::shared_ptr<const void> job, Task task);
  // Removes and returns the waiting task of `job`. Empty if there is none, because it has started
  // or was never submitted.
  Task Withdraw(const void* job);

 private:
  struct Entry {
    std::shared_ptr<const void> job;
    Task task;
  };

  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// Decides when long work lets other work go first.

// Measures how long a piece of work has run, and yields between two of its steps once that time
// reaches a quantum. On a busy server, a yield waits for up to 20 ms. Yields depend on the time
// worked, not on the number of steps. So they take the same share of the time for short steps (0.3
// ms for a block of a stream) as for long steps (10 ms for a tile).
//
// Example:
//   quantum.YieldIfDue();  // not while anything is held that others wait for
//   quantum.Begin();
//   …                      // work; YieldIfDue() between its steps
//   quantum.End();
//
// Used by one thread at a time.
class WorkQuantum {
 public:
  using Clock = std::chrono::steady_clock;

  // Time worked between two yields: short compared with the longest wait of a Transform, long
  // compared with a small block.
  static constexpr Clock::duration kDefault = std::chrono::milliseconds(2);

  // Calls `yield`, which may be empty, once work has run for `quantum`, or before every step if
  // `quantum` is 0.
  explicit WorkQuantum(std::function<void()> yield = nullptr, Clock::duration quantum = kDefault,
                       std::function<Clock::time_point()> now = Clock::now);

  // The time from here to End counts as work, except for yields.
  void Begin();
  void End();
  // To be called between two steps, whether between Begin and End or not.
  void YieldIfDue();

 private:
  // Adds the time since the work began, or since the last call of Count.
  void Count();

  std::function<void()> yield_;
  Clock::duration quantum_;
  std::function<Clock::time_point()> now_;
  // Time up to which work was counted; unset while no work runs.
  std::optional<Clock::time_point> since_;
  // Time worked since the last yield.
  Clock::duration worked_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_JOB_QUEUE_H_
