// Pieces of work of builds and evaluations that wait for one of a few threads.
//
// A piece belongs to a job and can be withdrawn while it waits. Whoever ends a job withdraws what
// waits for it: so at most one piece for each unfinished job is queued, however often clients begin
// builds and give them up, and nothing of a build that ended stays behind a long one.
//
// Pieces run at the lowest priority: between two looks at whether a Transform waits (checkpoints)
// one may have a core for milliseconds, and what a Transform needs meanwhile, an event loop first
// of all, gets it. A thread that has run more than its share beside a piece must wait when it
// wakes; at this priority that share is 98 % of a core. Of a core that others never leave a piece
// has 1.5 %. The server's own calls leave it: a build of 0.6 s takes 1.3 s beside 16 callers.
//
// Guarantees: pieces start in the order of Submit. The destructor runs what waits and then joins.
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

  // How nice its threads are, from 0 to 19.
  static constexpr int kNiceness = 19;

  explicit JobQueue(int threads);
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  // `job` is whatever the piece belongs to, kept alive while it waits. REQUIRES: nothing of `job`
  // waits here.
  void Submit(std::shared_ptr<const void> job, Task task);
  // What waits for `job`, taken out; empty when nothing does, because it has started or never came.
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
