// A few threads for work that may wait for a disk or take long: loading versions, store calls,
// builds.
//
// Guarantees: tasks start in the order of Submit. At most `max_queued` tasks wait, and further ones
// are rejected at once. The destructor runs the accepted tasks and then joins the threads.
// Thread-safety: all methods may be called from any thread, and Submit also from within a task.
#ifndef PHIMAP_SERVER_SCHEDULE_TASK_POOL_H_
#define PHIMAP_SERVER_SCHEDULE_TASK_POOL_H_

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/thread/mutex.h"
#include "prometheus/gauge.h"
#include "server/admission/caller_shares.h"

namespace phimap {

class TaskPool {
 public:
  using Task = std::function<void()>;

  // `name` is the plural that the error for a full queue contains, such as "store calls". `waiting`
  // shows the number of waiting tasks; it must outlive the pool, and may be null.
  TaskPool(std::string name, int threads, int max_queued, prometheus::Gauge* waiting = nullptr);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // Queues a task of `caller`, who is null for the server's own work. If max_queued tasks already
  // wait, or as many of the caller as it may have (SharedPlaces), drops the task and returns
  // RESOURCE_EXHAUSTED (reason QUEUE_FULL, with a retry delay).
  absl::Status Submit(Task task, const CallerPointer& caller = nullptr);

 private:
  struct Waiting {
    SharedPlaces::Place place;
    Task task;
  };

  void Run();
  void ShowWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  SharedPlaces places_;
  prometheus::Gauge* const waiting_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_TASK_POOL_H_
