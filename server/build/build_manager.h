// All builds of this process: starts builds, lets clients follow them, and owns the threads that do
// the work.
//
// A build is known by (mapping, build_id) from Begin until it is forgotten. A build that ends
// before `finish` is forgotten at once and leaves no record, unless CancelBuild ended it. A build
// that ends after `finish` is kept for a while in memory and for kBuildRetention in the store, so
// that a repeated Build finds its result. Transient errors (no disk space, no memory) are not
// recorded, and the same id may be used again.
//
// Requires:   store, registry, pools and metrics outlive the manager; Drain before destruction.
// Guarantees: rows are added and versions computed on build threads. The store is called on build
//             threads and on the store pool. Only methods marked "Blocking" wait for these threads
//             or for the store. When the end of a build is announced, its version is durable, and
//             is the mapping's newest for every Transform that starts afterwards.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_BUILD_BUILD_MANAGER_H_
#define PHIMAP_SERVER_BUILD_BUILD_MANAGER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/plan/examples.h"
#include "core/thread/mutex.h"
#include "server/admission/memory_budget.h"
#include "server/build/build_computation.h"
#include "server/build/build_job.h"
#include "server/build/stored_build.h"
#include "server/kernel_client/kernel_service.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/registry/version_registry.h"
#include "server/schedule/job_queue.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"

namespace phimap {

class BuildManager {
 public:
  using Clock = BuildJob::Clock;

  struct Options {
    // Maximum number of unfinished builds, including those that still receive rows.
    int max_builds = 16;
    int64_t memory_bytes = int64_t{4} << 30;
    // How long a client may be silent before it sends `finish`.
    absl::Duration idle_timeout = absl::Minutes(5);
    // Maximum number of builds that compute at the same time; further builds wait in state kQueued.
    // Also the number of threads that the computing builds share.
    int compute_threads = 1;
    // Threads that add rows to samples.
    int ingest_threads = 1;
    // As in BuildComputation::Options.
    int training_threads = 1;
    // Finds the services that compute remote kernels; must outlive the manager. Null if none are
    // configured.
    const KernelServices* kernels = nullptr;
    // As in BuildComputation::Options.
    std::string spool_folder = "/tmp";
    int64_t spool_bytes = int64_t{16} << 30;
    // How long this server keeps a build whose claim it cannot renew. Only for stores that several
    // servers share.
    absl::Duration lease = absl::Seconds(15);
    // Interval at which claims are renewed and the builds of other servers are polled. Must be
    // shorter than `lease`.
    absl::Duration renew_every = absl::Seconds(1);
    std::function<Clock::time_point()> now = [] { return Clock::now(); };
    // Yields to Transforms. Each build calls it on its build thread, between tiles and between
    // blocks, after it has worked for `quantum` since its last call. If `quantum` is 0, it is
    // called before each tile and each block.
    std::function<void()> yield = [] {};
    WorkQuantum::Clock::duration quantum = WorkQuantum::kDefault;
  };
  BuildManager(Options options, Store& store, VersionRegistry& registry, TaskPool& store_pool,
               const BuildMetrics& metrics, const Logger& logger);
  ~BuildManager();
  BuildManager(const BuildManager&) = delete;
  BuildManager& operator=(const BuildManager&) = delete;

  struct Attachment {
    std::shared_ptr<BuildJob> job;
    // True if the build already existed. The caller then follows the job and sends no rows.
    bool attached = false;
  };
  // Starts a build, or attaches to the build with this id. `done` is called exactly once, before
  // Begin returns or later on a store thread. Errors: ALREADY_EXISTS (the id has another spec),
  // ABORTED (its stream is still open), RESOURCE_EXHAUSTED (too many builds, or a build that can
  // never fit into memory, whatever rows it gets), UNAVAILABLE (shutting down). REQUIRES:
  // order.spec.Validate() is OK. The version lives for `order.ttl` after its last use. The ttl is
  // treated as part of the spec: a Build with another ttl has another spec.
  void Begin(BuildId id, BuildOrder order, std::function<void(absl::StatusOr<Attachment>)> done);
  // Adds a block of rows, labeled if the build trains; at most one call at a time per job. `done`
  // is called exactly once, usually on a build thread; the block must stay readable until then. On
  // error, the build has ended.
  void Add(std::shared_ptr<BuildJob> job, TrainingBlock block,
           std::function<void(absl::Status)> done);
  // Checks that phimap or a configured kernel service computes the kernel of `spec`. Otherwise
  // returns FAILED_PRECONDITION (KERNEL_SERVICE_NOT_LISTED, field "spec.kernel"). Begin makes this
  // check first.
  absl::Status CheckKernel(const BuildSpec& spec) const;
  // Ends the stream and queues the build for computing. Ends the build with DATA_LOSS
  // (ROW_COUNT_MISMATCH) if the number of rows received is not `row_count`.
  absl::Status Finish(const std::shared_ptr<BuildJob>& job, int64_t row_count);
  // Ends the build with `error` if it is still receiving, because its stream broke or was invalid.
  // No-op otherwise.
  void Abandon(const std::shared_ptr<BuildJob>& job, const absl::Status& error);

  // Returns the state of a build, or NOT_FOUND. Blocking.
  absl::StatusOr<BuildSnapshot> Get(const BuildId& id);
  // Cancels a build unless it has finished or is publishing, and returns its state, or NOT_FOUND.
  // `origin`: who asks for it. Blocking.
  absl::StatusOr<BuildSnapshot> Cancel(const BuildId& id, const ChangeOrigin& origin = {});
  // Memory limit of all unfinished builds together.
  int64_t memory_limit_bytes() const { return memory_.max_bytes(); }
  int compute_threads() const { return options_.compute_threads; }
  // Returns the builds in memory, newest first. An empty `mapping` means those of all mappings.
  std::vector<BuildSnapshot> List(absl::string_view mapping) const;

  // Returns the builds of this server, followed by those that other servers run. Blocking.
  absl::StatusOr<std::vector<BuildSnapshot>> ListAll(absl::string_view mapping) const;

  // Forgets the build of version `number` of a mapping, or of all its versions if nullopt. Called
  // when these versions were deleted; the store has forgotten their builds too.
  void VersionsGone(absl::string_view mapping, std::optional<int64_t> number);

  // Resources that builds and imports share: the memory budget, and the limit on a client's
  // silence.
  MemoryBudget& memory() { return memory_; }
  absl::Duration idle_timeout() const { return options_.idle_timeout; }

  // Changes Options::max_builds, memory_bytes and spool_bytes. Builds under way stay.
  void SetLimits(int max_builds, int64_t memory_bytes, int64_t spool_bytes);

  // Ends builds whose client has been silent for idle_timeout, with DEADLINE_EXCEEDED. Called by a
  // thread of the manager, and by tests after they have moved the clock.
  void EndIdleBuilds();
  // Renews the claims of this server's builds. Ends builds that another server took over (ABORTED)
  // or was asked to cancel, and refreshes the progress of other servers' builds that clients follow
  // from here. Called by a thread of the manager, and by tests. Blocking. REQUIRES: the store has
  // claims.
  void RenewClaims() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the end of builds whose lease expired at least one lease period ago: as cancelled if
  // that was requested, as BUILD_INTERRUPTED if no client followed the build. Releases the claim of
  // any other such build an hour after its lease expired. Called as RenewClaims is, with the same
  // requirements.
  void EndBuildsOfTheDead();
  // Rejects new builds, waits until all builds have ended, and cancels the remaining ones at
  // `deadline`. Followed builds get UNAVAILABLE, others ABORTED. Blocking. Idempotent.
  void Drain(Clock::time_point deadline);

 private:
  struct Known {
    std::shared_ptr<BuildJob> job;
    int64_t sequence = 0;
    // Set if versions of the mapping were deleted while this build was publishing. The deleted
    // version may be this build's, so the ended build is not kept in memory, and the store answers
    // for it.
    bool ask_store = false;
  };

  // Where an ended build can still be found.
  enum class Keep { kNothing, kInMemory, kInStore };
  // How a build ends.
  struct Ending {
    BuildEvent event;
    absl::Status error;
    Keep keep;
    std::shared_ptr<const CertifiedVersion> version = nullptr;
    // Who cancelled it by a call to this server; null otherwise.
    const ChangeOrigin* cancelled_by = nullptr;
  };

  // Answers a Build from the jobs in memory, or with an error if the server is shutting down.
  // Returns nullopt if the id is not in memory and the server is not shutting down.
  std::optional<absl::StatusOr<Attachment>> AttachToKnown(const BuildId& id,
                                                          const std::string& digest) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks the id up in the store, on a store thread. Enters a new job only if the store does not
  // know the id, so that a request for a stored build does not count against max_builds.
  absl::StatusOr<Attachment> LookUp(const BuildId& id, const BuildOrder& order,
                                    const std::string& digest);
  // Claims the id of a job that was just entered, on a store thread. If another server owns the id,
  // attaches to its build or returns the error that applies.
  absl::StatusOr<Attachment> Claim(const std::shared_ptr<BuildJob>& job);
  absl::StatusOr<Attachment> AttachElsewhere(const BuildId& id, const std::string& digest,
                                             const BuildClaim& claim);
  absl::StatusOr<Attachment> AttachToStored(const BuildId& id, const std::string& digest,
                                            StoredBuild stored);
  // Undoes Enter, before other threads have seen the job.
  void GiveBack(const std::shared_ptr<BuildJob>& job, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the thread that renews claims release the claim of an ended job.
  void ReleaseSoon(const BuildJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseClaims() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteRenewal(const absl::Status& renewed);
  void FollowElsewhere() ABSL_LOCKS_EXCLUDED(mutex_);
  void LookElsewhere(BuildJob& job);
  // Takes over a claim whose lease has expired, and records `error` as the end of its build. If
  // `error` is OK, releases the claim without a record.
  absl::Status RecordForTheDead(const BuildClaim& claim, const absl::Status& error);
  absl::StatusOr<BuildSnapshot> GetElsewhere(const BuildId& id);
  absl::StatusOr<BuildSnapshot> CancelElsewhere(const BuildId& id, const ChangeOrigin& origin);
  void WatchClaims();
  void CancelNow(const std::shared_ptr<BuildJob>& job, const ChangeOrigin* origin = nullptr);
  std::optional<BuildClaimant> ClaimantOf(const BuildJob& job) const;
  absl::StatusOr<StoredBuild> ReadStored(const BuildId& id);
  absl::StatusOr<Attachment> Enter(const BuildId& id, const BuildOrder& order,
                                   const std::string& digest) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndPending() ABSL_LOCKS_EXCLUDED(mutex_);
  // Submits a piece of the job's work, unless the job has ended.
  void Queue(JobQueue& queue, const std::shared_ptr<BuildJob>& job, JobQueue::Task task);
  // Removes the queued work of an ended job from the queues.
  void Withdraw(const BuildJob& job);
  // Computes and publishes the version. Runs on a build thread.
  void Run(const std::shared_ptr<BuildJob>& job);
  absl::StatusOr<CertifiedVersion> Publish(const BuildJob& job, BuiltVersion built);
  void Fail(const std::shared_ptr<BuildJob>& job, const absl::Status& error);
  void RecordFailure(const BuildJob& job, const Ending& ending);
  // Ends a build; the only way a build ends. Before observers are notified, its id and place are
  // free, or its result is kept. Returns false, and changes nothing, if the event is illegal in the
  // current state.
  bool End(const std::shared_ptr<BuildJob>& job, Ending ending) ABSL_LOCKS_EXCLUDED(mutex_);
  void LogEnd(const BuildJob& job) const;
  void Remember(const std::shared_ptr<BuildJob>& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const std::shared_ptr<BuildJob>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<BuildJob> Find(const BuildId& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<BuildJob>> Unfinished() const ABSL_LOCKS_EXCLUDED(mutex_);
  void WatchIdle();

  const Options options_;
  Store& store_;
  VersionRegistry& registry_;
  TaskPool& store_pool_;
  const BuildMetrics& metrics_;
  const Logger& logger_;
  MemoryBudget memory_;
  BuildComputation computation_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<BuildId, Known> jobs_ ABSL_GUARDED_BY(mutex_);
  // Ended jobs that stay in memory, oldest first.
  std::deque<std::shared_ptr<BuildJob>> remembered_ ABSL_GUARDED_BY(mutex_);
  // Jobs that represent builds of other servers.
  std::vector<std::weak_ptr<BuildJob>> elsewhere_ ABSL_GUARDED_BY(mutex_);
  std::vector<BuildClaims::Renewal> to_release_ ABSL_GUARDED_BY(mutex_);
  int unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
  // Places of unfinished builds.
  SharedPlaces places_{options_.max_builds};
  // Number of look-ups and ends in progress; Drain waits for them.
  int pending_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::atomic<bool> renewals_fail_{false};

  // The queues and threads come last, so that they end before everything that they use.
  JobQueue compute_queue_;
  JobQueue ingest_queue_;
  std::thread idle_watch_;
  // Runs only if the store has claims.
  std::thread claim_watch_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_MANAGER_H_
