#include "server/schedule/task_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr int64_t kRetryDelayMs = 200;

}  // namespace

TaskPool::TaskPool(std::string name, int threads, int max_queued, prometheus::Gauge* waiting)
    : name_(std::move(name)), max_queued_(max_queued), waiting_(waiting) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

TaskPool::~TaskPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status TaskPool::Submit(Task task) {
  MutexLock lock(&mutex_);
  if (queue_.size() >= static_cast<size_t>(max_queued_)) {
    return MakeError(absl::StatusCode::kResourceExhausted, "QUEUE_FULL", "",
                     absl::StrCat("too many ", name_, " are waiting; the limit is ", max_queued_),
                     {{"limit", absl::StrCat(max_queued_)}}, kRetryDelayMs);
  }
  queue_.push_back(std::move(task));
  ShowWaiting();
  changed_.NotifyOne();
  return absl::OkStatus();
}

void TaskPool::ShowWaiting() {
  if (waiting_ != nullptr) waiting_->Set(static_cast<double>(queue_.size()));
}

void TaskPool::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
      ShowWaiting();
    }
    task();
  }
}

}  // namespace phimap
