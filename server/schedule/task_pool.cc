#include "server/schedule/task_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/thread/start_thread.h"

namespace phimap {
namespace {

constexpr int64_t kRetryDelayMs = 200;

}  // namespace

TaskPool::TaskPool(std::string name, int threads, int max_queued, prometheus::Gauge* waiting)
    : name_(std::move(name)), places_(max_queued), waiting_(waiting) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) threads_.push_back(StartThread(name_, [this] { Run(); }));
}

TaskPool::~TaskPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status TaskPool::Submit(Task task, const CallerPointer& caller) {
  std::optional<SharedPlaces::Place> place = places_.Take(caller);
  if (!place.has_value()) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, reason::kQueueFull, "",
        absl::StrCat("too many ", name_, " are waiting; the limit is ", places_.Text(caller)),
        {{"limit", absl::StrCat(places_.LimitOf(caller))}}, kRetryDelayMs);
  }
  MutexLock lock(&mutex_);
  queue_.push_back({*std::move(place), std::move(task)});
  ShowWaiting();
  changed_.NotifyOne();
  return absl::OkStatus();
}

void TaskPool::ShowWaiting() {
  if (waiting_ != nullptr) waiting_->Set(static_cast<double>(queue_.size()));
}

void TaskPool::Run() {
  while (true) {
    Waiting next;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
      ShowWaiting();
    }
    next.place = SharedPlaces::Place();
    next.task();
  }
}

}  // namespace phimap
