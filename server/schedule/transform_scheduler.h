// Passes requests for features to the compute pool, and computes batches of event loops.
//
// Requires:   Drain() before destruction; workers call RunWorker (or, in tests, RunOne).
// Guarantees: every work's `done` is called exactly once.
//             Work that was cancelled or whose deadline passed is dropped when it is taken, before
//             anything is spent on it, and long work looks again between row tiles; there it also
//             lets others go first once it had its quantum (batch_policy.h).
//             No worker sleeps while there is work for it: a queue is shared between the workers,
//             in batches of at least four rows. Requests that gathered while all were busy share a
//             batch of the engine if they are of one version (batch_policy.h); each has a status of
//             its own, and the bits it would have alone (core/engine/engine.h). Versions are served
//             in turn, each oldest first.
// Memory is bounded by who submits: every request is charged before (request_memory.h).
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_SCHEDULE_TRANSFORM_SCHEDULER_H_
#define PHIMAP_SERVER_SCHEDULE_TRANSFORM_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/engine/engine.h"
#include "server/observe/transform_metrics.h"
#include "server/schedule/batch_policy.h"
#include "server/schedule/compute_speed.h"
#include "server/schedule/transform_work.h"
#include "server/schedule/version_queues.h"
#include "server/sync/mutex.h"
#include "server/sync/steady_time.h"

namespace phimap {

class TransformScheduler {
 public:
  struct Options {
    // Clock; tests turn it by hand.
    std::function<absl::Time()> now = SteadyNow;
  };
  // `metrics` outlives the scheduler.
  TransformScheduler(Options options, const TransformMetrics& metrics);
  ~TransformScheduler();
  TransformScheduler(const TransformScheduler&) = delete;
  TransformScheduler& operator=(const TransformScheduler&) = delete;

  // Queues `work` for a worker. Refused work gets its `done` here, with UNAVAILABLE (reason
  // SERVER_SHUTTING_DOWN).
  void Submit(TransformWork work);

  // Expected time of `work` alone, from the measured speed of its version.
  absl::Duration Estimate(const TransformWork& work) const;
  // Accepts work that the caller computes soon by RunBatch: `work` moves into the result, or gets
  // its `done` here as in Submit.
  std::optional<QueuedWork> Accept(TransformWork work);
  // Computes accepted work of one version here, together at most a tile of rows.
  void RunBatch(std::vector<QueuedWork> batch, EngineScratch& scratch);
  // Hands accepted work of one version to a worker that sleeps; gives it back when none does.
  std::vector<QueuedWork> HandOver(std::vector<QueuedWork> batch);

  // Whether a worker sleeps that has not been woken yet.
  bool WorkerSleeps() const;

  // Whether a request is queued or being computed.
  bool TransformsPending() const;
  // Waits until no request is pending, at most `max_wait`. Builds call it before each tile. Without
  // the bound, a build on a server that is never idle would never finish.
  void WaitWhilePending(absl::Duration max_wait);

  // Runs a worker: takes batches and computes until Drain, including the requests that are queued
  // then.
  void RunWorker();
  // Takes and computes the next batch of a worker. Returns false if there is none.
  bool RunOne(EngineScratch& scratch);

  // Refuses from now on, and returns when all accepted work is done. Idempotent.
  void Drain();

 private:
  // Number of requests and their bytes.
  struct Accounting {
    int64_t requests = 0;
    double multiplications = 0;
    void Add(const TransformWork& work);
    void Subtract(const Accounting& other);
  };
  // A request of a batch, ready to be computed.
  struct Share {
    QueuedWork queued;
    absl::Status status;
    int64_t first_row = 0;  // of this batch

    int64_t rows() const { return queued.rows_done - first_row; }
    bool finished() const { return !status.ok() || queued.RowsLeft() == 0; }
  };
  // The thread that computes. A worker continues long work itself; another thread leaves the rest
  // to the workers.
  enum class Computer { kWorker, kCaller };

  // Whether the caller is to wake a worker after releasing the lock: true when more work is queued
  // than the waking workers will take.
  bool ClaimSleeper() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a batch; it is empty at the end of the worker's life.
  std::vector<QueuedWork> AwaitBatch() ABSL_LOCKS_EXCLUDED(mutex_);
  // A pass, from when it was taken, `started`, to its answers.
  void Run(std::vector<QueuedWork> batch, absl::Time started, Computer computer,
           EngineScratch& scratch) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunCounted(std::vector<QueuedWork> batch, absl::Time started, Computer computer,
                  EngineScratch& scratch) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs a batch on a thread of the pool.
  void RunOnPool(std::vector<QueuedWork> batch, EngineScratch& scratch) ABSL_LOCKS_EXCLUDED(mutex_);
  // The part that may be computed; the rest is finished, and entered into `finished`.
  std::vector<Share> Prepare(std::vector<QueuedWork> batch, Accounting& finished);
  absl::Status PrepareOne(QueuedWork& queued) const;
  // Computes all of the shares, or as much of a single long one as its quantum allows.
  void Compute(std::vector<Share>& shares, absl::Time started, Computer computer,
               EngineScratch& scratch) const;
  void ComputeTogether(std::vector<Share>& shares, EngineScratch& scratch) const;
  absl::Status ComputeTiles(QueuedWork& queued, absl::Time started, Computer computer,
                            EngineScratch& scratch) const;
  bool OthersWait() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckAlive(const TransformWork& work) const;
  // Learns and counts the time of the batch `shares`.
  void Observe(std::vector<Share>& shares, absl::Duration elapsed) ABSL_LOCKS_EXCLUDED(mutex_);
  // Queues the rest of work whose quantum is over.
  void Requeue(QueuedWork queued) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `done` and lets go of the request.
  void Finish(TransformWork work, const absl::Status& status, Accounting& finished) const;
  // The time of `queued` until it was taken.
  void CountWait(const QueuedWork& queued, absl::Time taken) const;
  void CountDrop(const absl::Status& status) const;
  // Subtracts finished requests from the accounting.
  void Release(const Accounting& finished) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const TransformMetrics& metrics_;
  mutable Mutex mutex_;
  CondVar work_queued_;
  CondVar none_pending_;
  // Taken only in WaitWhilePending.
  Mutex idle_mutex_;
  CondVar idle_;
  VersionQueues queues_ ABSL_GUARDED_BY(mutex_);
  // Queued or running.
  Accounting pending_ ABSL_GUARDED_BY(mutex_);
  // pending_.requests, to be looked at without the lock.
  std::atomic<int64_t> pending_requests_ = 0;
  ComputeSpeed speed_ ABSL_GUARDED_BY(mutex_);
  int workers_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of sleeping workers, and of sleeping workers that have been notified but are not awake
  // yet.
  int sleeping_ ABSL_GUARDED_BY(mutex_) = 0;
  int waking_ ABSL_GUARDED_BY(mutex_) = 0;
  // Threads that are in a function of this class with work of theirs: Drain waits for them, since
  // they touch the scheduler after their last `done`.
  int computing_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_TRANSFORM_SCHEDULER_H_
