// A gate at which threads wait until a test opens it. With it, tests need not sleep.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_GATE_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_GATE_H_

#include "core/thread/mutex.h"

namespace phimap::testing {

// Thread-safe.
class Gate {
 public:
  explicit Gate(bool open = false) : open_(open) {}

  // Returns when the gate is open.
  void Wait() {
    MutexLock lock(&mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (!open_ && passes_ == 0) changed_.Wait(&mutex_);
    if (!open_) --passes_;
    --waiting_;
    changed_.NotifyAll();
  }
  // Returns when some thread waits at the gate.
  void AwaitWaiting() {
    MutexLock lock(&mutex_);
    while (waiting_ == 0) changed_.Wait(&mutex_);
  }
  // Lets one waiting thread through, and returns when it has passed. REQUIRES: a thread waits.
  void Pass() {
    MutexLock lock(&mutex_);
    ++passes_;
    changed_.NotifyAll();
    while (passes_ > 0) changed_.Wait(&mutex_);
  }
  void Open() { Set(true); }
  void Close() { Set(false); }

 private:
  void Set(bool open) {
    MutexLock lock(&mutex_);
    open_ = open;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_);
  int passes_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_GATE_H_
