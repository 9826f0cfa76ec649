#include "server/schedule/job_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/thread/start_thread.h"

namespace phimap {
namespace {

// Lowers the priority of the calling thread. (In Linux, each thread has a priority of its own.) The
// call cannot fail, because lowering a priority is always allowed. A thread with an even lower
// priority keeps it.
void LowerPriority() {
  const int niceness = std::max(JobQueue::kNiceness, getpriority(PRIO_PROCESS, gettid()));
  setpriority(PRIO_PROCESS, gettid(), niceness);
}

}  // namespace

JobQueue::JobQueue(int threads) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) threads_.push_back(StartThread("jobs", [this] { Run(); }));
}

JobQueue::~JobQueue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void JobQueue::Submit(std::shared_ptr<const void> job, Task task) {
  MutexLock lock(&mutex_);
  waiting_.push_back({std::move(job), std::move(task)});
  changed_.NotifyOne();
}

JobQueue::Task JobQueue::Withdraw(const void* job) {
  MutexLock lock(&mutex_);
  const auto entry = std::find_if(waiting_.begin(), waiting_.end(),
                                  [job](const Entry& e) { return e.job.get() == job; });
  if (entry == waiting_.end()) return nullptr;
  Task task = std::move(entry->task);
  waiting_.erase(entry);
  return task;
}

void JobQueue::Run() {
  LowerPriority();
  while (true) {
    Entry entry;
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (waiting_.empty()) return;
      entry = std::move(waiting_.front());
      waiting_.pop_front();
    }
    entry.task();
  }
}

WorkQuantum::WorkQuantum(std::function<void()> yield, Clock::duration quantum,
                         std::function<Clock::time_point()> now)
    : yield_(std::move(yield)), quantum_(quantum), now_(std::move(now)) {}

void WorkQuantum::Begin() { since_ = now_(); }

void WorkQuantum::End() {
  Count();
  since_.reset();
}

void WorkQuantum::Count() {
  if (!since_.has_value()) return;
  const Clock::time_point now = now_();
  worked_ += now - *since_;
  since_ = now;
}

void WorkQuantum::YieldIfDue() {
  Count();
  if (worked_ < quantum_) return;
  worked_ = Clock::duration::zero();
  if (yield_) yield_();
  if (since_.has_value()) since_ = now_();
}

}  // namespace phimap
