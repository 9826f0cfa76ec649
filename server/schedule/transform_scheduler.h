// Passes requests for features to the compute pool, and computes batches that event loops have
// gathered.
//
// Requires:   Drain is called before destruction. Workers call RunWorker (or, in tests, RunOne).
// Guarantees: The `done` of each work is called exactly once.
//             Work that was cancelled or whose deadline has passed is dropped when a worker takes
//             it, before any time is spent on it. Long work is checked again between row tiles.
//             Once its quantum (batch_policy.h) is used up, long work lets other work go first at
//             the next such check.
//             No worker sleeps while there is work for it: a queue is shared between the workers,
//             in batches of at least four rows. Versions are served in turn, and the requests of
//             each version oldest first.
//             Requests that arrived while all workers were busy share a batch of the engine if they
//             are for the same version (batch_policy.h). Each request has its own status, and its
//             features are bit-for-bit the same as if it were computed alone
//             (core/engine/engine.h).
//
// Memory is bounded by the callers of Submit. They charge every request to the budget before they
// submit it (request_memory.h).
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_SCHEDULE_TRANSFORM_SCHEDULER_H_
#define PHIMAP_SERVER_SCHEDULE_TRANSFORM_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/engine/engine.h"
#include "core/plan/examples.h"
#include "core/thread/mutex.h"
#include "core/thread/steady_time.h"
#include "server/observe/metrics.h"
#include "server/observe/version_series.h"
#include "server/schedule/batch_policy.h"

namespace phimap {

// One request for features, as it waits in a queue.
struct TransformWork {
  // Keeps the version alive; work of one engine shares a queue.
  std::shared_ptr<const Engine> engine;
  // REQUIRES: the engine accepts these rows. The bytes must stay readable until `done`.
  ExamplesView rows;
  // Path of the rows in the request, including a final dot. Errors put it before "rows[i]". Must
  // outlive `done`.
  absl::string_view field;
  absl::Time deadline = absl::InfiniteFuture();
  // Set to true when the request is cancelled. Must outlive `done`. Null if the request cannot be
  // cancelled.
  const std::atomic<bool>* cancelled = nullptr;
  // Time at which the request was read, for the metrics. InfinitePast if unknown.
  absl::Time received = absl::InfinitePast();
  // Checks the values and returns the destination of the features. Called once on the computing
  // thread, right before the first row is computed, so that waiting work needs no memory for
  // features. Not called for work that is dropped. Errors name fields within the rows.
  std::function<absl::StatusOr<char*>()> prepare;
  // Called exactly once, on the computing thread, or within Submit if the work is rejected. If it
  // throws std::bad_alloc, it is called again with a status that needs no memory.
  std::function<void(const absl::Status&)> done;

  // Counts the batches of the version. Must live as long as `engine`. Null means not counted.
  VersionTally* tally = nullptr;

  double Multiplications() const { return engine->Multiplications(rows); }
};

// Work that was accepted and has to be finished. If it is destroyed before, because its holder
// found no memory, its `owner` finishes it with RESOURCE_EXHAUSTED.
struct QueuedWork {
  // Finishes accepted work.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Must not throw.
    virtual void Abandon(TransformWork& work) = 0;
  };

  QueuedWork(TransformWork accepted, absl::Time now, Owner& finisher)
      : work(std::move(accepted)), enqueued(now), owner(&finisher) {}
  QueuedWork(QueuedWork&& other) noexcept
      : work(std::move(other.work)),
        enqueued(other.enqueued),
        owner(std::exchange(other.owner, nullptr)),
        rows_done(other.rows_done),
        features(other.features),
        computing(other.computing) {}
  QueuedWork& operator=(QueuedWork&& other) noexcept {
    if (this == &other) return *this;
    if (owner != nullptr) owner->Abandon(work);
    work = std::move(other.work);
    enqueued = other.enqueued;
    owner = std::exchange(other.owner, nullptr);
    rows_done = other.rows_done;
    features = other.features;
    computing = other.computing;
    return *this;
  }
  ~QueuedWork() {
    if (owner != nullptr) owner->Abandon(work);
  }

  TransformWork work;
  absl::Time enqueued;
  // Null if the work was finished, or moved away.
  Owner* owner;
  // State of long work that has let others go first: the number of rows computed, the destination
  // of the features (null if not prepared yet) and the time spent so far.
  int64_t rows_done = 0;
  char* features = nullptr;
  absl::Duration computing = absl::ZeroDuration();

  int64_t RowsLeft() const { return work.rows.rows() - rows_done; }
};

// The waiting requests: one first-in-first-out queue for each version, served in turn.
//
// A version with a long queue does not delay the others: after each batch its queue goes to the end
// of the line. Not thread-safe; the scheduler guards it.
class VersionQueues {
 public:
  // Throws std::bad_alloc; `work` is then unchanged.
  void Push(QueuedWork&& work);
  // Takes the next batch for one of `workers`: requests of one version, oldest first. If no other
  // version has work for the other workers, the batch is so small that it leaves them their share
  // (batch_policy.h). The result is empty if nothing waits. Throws std::bad_alloc, and
  // changes nothing, if there is no memory for the batch. REQUIRES: workers > 0.
  std::vector<QueuedWork> Take(int workers);
  bool empty() const { return order_.empty(); }
  // Number of workers worth waking (WorthwhileBatches), for all versions together.
  int64_t batches() const { return batches_; }

 private:
  struct Queue {
    std::deque<QueuedWork> works;
    int64_t rows = 0;
    int64_t Batches() const;
  };

  // The queues that are not empty, keyed by the engine of their version.
  std::unordered_map<const Engine*, Queue> queues_;
  int64_t batches_ = 0;
  // The versions in `queues_`, next to be served first.
  std::deque<const Engine*> order_;
};

class TransformScheduler final : private QueuedWork::Owner {
 public:
  struct Options {
    // Clock; tests replace it.
    std::function<absl::Time()> now = SteadyNow;
  };
  // `metrics` must outlive the scheduler.
  TransformScheduler(Options options, const TransformMetrics& metrics);
  ~TransformScheduler() override;
  TransformScheduler(const TransformScheduler&) = delete;
  TransformScheduler& operator=(const TransformScheduler&) = delete;

  // Queues `work` for a worker. If `work` is rejected, calls its `done` here, with UNAVAILABLE
  // (reason SERVER_SHUTTING_DOWN).
  void Submit(TransformWork work);

  // Returns the expected time of `work` alone, from the measured speed of its version.
  absl::Duration Estimate(const TransformWork& work) const;
  // Accepts work that the caller will soon compute by RunBatch. Moves `work` into the result; if it
  // is rejected, calls its `done` as in Submit.
  std::optional<QueuedWork> Accept(TransformWork work);
  // Computes accepted work of one version on this thread. The work must have at most a tile of rows
  // in total.
  void RunBatch(std::vector<QueuedWork> batch, EngineScratch& scratch);
  // Hands accepted work of one version to a sleeping worker. Returns the work that it did not hand
  // over: all of it if no worker sleeps, some if there is no memory for the rest, else none.
  std::vector<QueuedWork> HandOver(std::vector<QueuedWork> batch);

  // Whether a worker sleeps that has not been woken yet.
  bool WorkerSleeps() const;

  // Whether a request is queued or being computed.
  bool TransformsPending() const;
  // Waits until no request is pending, at most `max_wait`. Builds call it before each tile. Without
  // the bound, a build on a server that is never idle would never finish.
  void WaitWhilePending(absl::Duration max_wait);

  // Runs a worker: takes batches and computes them until Drain is called, and then those that are
  // still queued.
  void RunWorker();
  // Takes and computes the next batch of a worker. Returns false if there is none.
  bool RunOne(EngineScratch& scratch);

  // Rejects work from now on, and returns when all accepted work is done. Idempotent.
  void Drain();

 private:
  // Number of requests, and the number of multiplications that they need.
  struct Accounting {
    int64_t requests = 0;
    double multiplications = 0;
    void Add(const TransformWork& work);
    void Subtract(const Accounting& other);
  };
  // What was finished in a scope. Releases it when the scope ends.
  class Finished {
   public:
    explicit Finished(TransformScheduler& scheduler) : scheduler_(scheduler) {}
    ~Finished() { scheduler_.Release(accounting_); }
    Finished(const Finished&) = delete;
    Finished& operator=(const Finished&) = delete;
    void Add(const TransformWork& work) { accounting_.Add(work); }

   private:
    TransformScheduler& scheduler_;
    Accounting accounting_;
  };
  // A request of a batch, ready to be computed.
  struct Share {
    QueuedWork queued;
    absl::Status status;
    int64_t first_row = 0;  // first row of the request in this batch

    int64_t rows() const { return queued.rows_done - first_row; }
    bool finished() const { return !status.ok() || queued.RowsLeft() == 0; }
  };
  // The thread that computes. A worker continues long work itself; any other thread leaves the rest
  // to the workers.
  enum class Computer { kWorker, kCaller };

  // Returns whether the caller must wake a worker after releasing the lock: true if more work is
  // queued than the workers that are already waking will take.
  bool ClaimSleeper() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the next batch. Returns false if there is no memory for it now.
  bool TryTake(std::vector<QueuedWork>& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a batch. Returns an empty one when the worker must end.
  std::vector<QueuedWork> AwaitBatch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Computes and answers a batch that was taken at `started`.
  void Run(std::vector<QueuedWork> batch, absl::Time started, Computer computer,
           EngineScratch& scratch) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunCounted(std::vector<QueuedWork> batch, absl::Time started, Computer computer,
                  EngineScratch& scratch) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs a batch on a thread of the pool.
  void RunOnPool(std::vector<QueuedWork> batch, EngineScratch& scratch) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the part of the batch that can be computed. Finishes the rest.
  std::vector<Share> Prepare(std::vector<QueuedWork> batch);
  absl::Status PrepareOne(QueuedWork& queued) const;
  // Computes all of the shares, or as much of a single long one as its quantum allows.
  void Compute(std::vector<Share>& shares, absl::Time started, Computer computer,
               EngineScratch& scratch) const;
  void ComputeTogether(std::vector<Share>& shares, EngineScratch& scratch) const;
  absl::Status ComputeTiles(QueuedWork& queued, absl::Time started, Computer computer,
                            EngineScratch& scratch) const;
  bool OthersWait() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckAlive(const TransformWork& work) const;
  // Records the time and the speed of the batch `shares`.
  void Observe(std::vector<Share>& shares, absl::Duration elapsed) ABSL_LOCKS_EXCLUDED(mutex_);
  // Queues the remaining rows of a request whose quantum is used up.
  void Requeue(QueuedWork queued) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `done` and frees the request.
  void Finish(QueuedWork queued, const absl::Status& status, Finished& finished) const;
  void Abandon(TransformWork& work) override;
  // Counts the time that `queued` waited until it was taken.
  void CountWait(const QueuedWork& queued, absl::Time taken) const;
  void CountDrop(const absl::Status& status) const;
  // Subtracts finished requests from the accounting.
  void Release(const Accounting& finished) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const TransformMetrics& metrics_;
  mutable Mutex mutex_;
  CondVar work_queued_;
  CondVar none_pending_;
  // Used only by WaitWhilePending.
  Mutex idle_mutex_;
  CondVar idle_;
  VersionQueues queues_ ABSL_GUARDED_BY(mutex_);
  // Work that is queued or running.
  Accounting pending_ ABSL_GUARDED_BY(mutex_);
  // The value of pending_.requests, readable without the lock.
  std::atomic<int64_t> pending_requests_ = 0;
  ComputeSpeed speed_ ABSL_GUARDED_BY(mutex_);
  int workers_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of sleeping workers, and of sleeping workers that have been notified but are not awake
  // yet.
  int sleeping_ ABSL_GUARDED_BY(mutex_) = 0;
  int waking_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of threads that compute in a function of this class. Drain waits for them, because they
  // use the scheduler after their last `done`.
  int computing_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_TRANSFORM_SCHEDULER_H_
