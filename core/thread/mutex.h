// The only locks of phimap: std::mutex and std::condition_variable with Clang's thread-safety
// annotations.
//
// absl::Mutex is not used, because ThreadSanitizer does not see the locks of Debian's build of it,
// and would report races in correct programs.
//
// Example:
//   class Counter {
//    public:
//     void Add() { MutexLock lock(&mutex_); ++count_; changed_.NotifyAll(); }
//     void WaitFor(int n) { MutexLock lock(&mutex_); while (count_ < n) changed_.Wait(&mutex_); }
//    private:
//     Mutex mutex_;
//     CondVar changed_;
//     int count_ ABSL_GUARDED_BY(mutex_) = 0;
//   };
#ifndef PHIMAP_CORE_THREAD_MUTEX_H_
#define PHIMAP_CORE_THREAD_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace phimap {

// A mutual-exclusion lock, not recursive.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Locks a Mutex as long as the MutexLock exists.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// A condition variable for Mutex. A wait may end although nobody notified it: always wait in a loop
// that checks the condition.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns false if the deadline passed before a notification.
  bool WaitUntil(Mutex* mutex, std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const bool notified = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_THREAD_MUTEX_H_
