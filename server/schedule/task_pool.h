// A few threads for work that may wait for a disk or take long: loading versions, store calls,
// builds.
//
// Guarantees: tasks start in the order of Submit; at most `max_queued` wait, one more is refused at
// once. The destructor runs the accepted tasks and then joins. Thread-safety: all methods may be
// called from any thread, Submit from within a task too.
#ifndef PHIMAP_SERVER_SCHEDULE_TASK_POOL_H_
#define PHIMAP_SERVER_SCHEDULE_TASK_POOL_H_

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "prometheus/gauge.h"
#include "server/sync/mutex.h"

namespace phimap {

class TaskPool {
 public:
  using Task = std::function<void()>;

  // `name` is the subject of the error when the queue is full: "store calls". `waiting` shows how
  // many tasks wait; it outlives the pool, and may be null.
  TaskPool(std::string name, int threads, int max_queued, prometheus::Gauge* waiting = nullptr);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // RESOURCE_EXHAUSTED (reason QUEUE_FULL, with a retry delay) when max_queued tasks wait; the task
  // is dropped then.
  absl::Status Submit(Task task);

 private:
  void Run();
  void ShowWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const int max_queued_;
  prometheus::Gauge* const waiting_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_TASK_POOL_H_
