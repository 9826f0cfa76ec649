// Steps of the shutdown that run beside others.
//
// Their threads were started with the server, because when it ends, the system may have no more.
#ifndef PHIMAP_SERVER_SHUTDOWN_STEPS_H_
#define PHIMAP_SERVER_SHUTDOWN_STEPS_H_

#include <chrono>
#include <functional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "core/status/check.h"
#include "server/kernel_client/kernel_services.h"
#include "server/schedule/task_pool.h"
#include "server/sync/mutex.h"

namespace phimap {

// A step that runs on a thread of `pool`, which has one for each.
class ShutdownStep {
 public:
  ShutdownStep(TaskPool& pool, std::function<void()> work) {
    PHIMAP_CHECK(pool.Submit([this, work = std::move(work)] {
                       work();
                       done_.Notify();
                     })
                     .ok());
  }
  void Await() { done_.WaitForNotification(); }

 private:
  absl::Notification done_;
};

// Stops the kernel services at a given time, or earlier if this object is destroyed before.
class DelayedStop {
 public:
  DelayedStop(TaskPool& pool, KernelServices& kernels, std::chrono::steady_clock::time_point at)
      : kernels_(kernels), waiting_(pool, [this, at] {
          {
            MutexLock lock(&mutex_);
            while (!now_ && changed_.WaitUntil(&mutex_, at)) {
            }
          }
          kernels_.Stop();
        }) {}
  ~DelayedStop() {
    {
      MutexLock lock(&mutex_);
      now_ = true;
      changed_.NotifyAll();
    }
    waiting_.Await();
  }
  DelayedStop(const DelayedStop&) = delete;
  DelayedStop& operator=(const DelayedStop&) = delete;

 private:
  KernelServices& kernels_;
  Mutex mutex_;
  CondVar changed_;
  bool now_ ABSL_GUARDED_BY(mutex_) = false;
  ShutdownStep waiting_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SHUTDOWN_STEPS_H_
