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

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "server/sync/mutex.h"

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_JOB_QUEUE_H_
