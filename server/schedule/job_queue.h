// Pieces of work of builds and evaluations that wait for one of a few threads.
//
// A piece belongs to a job and can be withdrawn while it waits. The job's end withdraws its waiting
// pieces: so at most one piece for each unfinished job is queued, however often clients begin
// builds and cancel them, and no piece of an ended build waits behind a long one.
//
// Pieces run at the lowest priority: between two checkpoints one may have a core for milliseconds,
// but a Transform, and an event loop first of all, gets the core when it needs it. A thread that
// has run more than its share beside a piece must wait when it wakes; at this priority that share
// is 98 % of a core. On a core that others never leave, a piece has 1.5 %. The server's own calls
// leave it: a build of 0.6 s takes 1.3 s beside 16 callers.
//
// Guarantees: pieces start in the order of Submit. The destructor runs the waiting pieces and then
// joins.
// Thread-safety: all methods may be called from any thread, from within a piece too.
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

  // Niceness of its threads, from 0 to 19.
  static constexpr int kNiceness = 19;

  explicit JobQueue(int threads);
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  // `job` owns the piece, and is kept alive while it waits. REQUIRES: nothing of `job` waits here.
  void Submit(std::shared_ptr<const void> job, Task task);
  // Removes and returns the task that waits for `job`; empty when there is none, because it has
  // started or never came.
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
