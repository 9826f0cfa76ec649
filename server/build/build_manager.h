// All builds of this process: who may start one, who may follow one, and the threads that do the
// work.
//
// A build is known by (mapping, build_id) from Begin until it is forgotten. One that ends before
// `finish` is forgotten at once and leaves no trace, unless CancelBuild ended it. One that ends
// after is remembered for a while in memory and for kBuildRetention in the store, so that a
// repeated Build finds its result; an error that passes by waiting (no disk space, no memory) is
// not recorded, and the same id may be used again.
//
// Requires:   store, registry, pools and metrics outlive the manager; Drain before destruction.
// Guarantees: rows are taken and versions computed on build threads, the store is called on those
//             and on the store pool; no method but those marked "Blocking" waits for either. The
//             version of a build whose end was announced is durable and is the mapping's newest for
//             every Transform that starts afterwards.
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
#include "server/build/build_computation.h"
#include "server/build/build_job.h"
#include "server/build/stored_build.h"
#include "server/kernel_client/kernel_services.h"
#include "server/memory/memory_budget.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/registry/version_registry.h"
#include "server/schedule/job_queue.h"
#include "server/schedule/task_pool.h"
#include "server/schedule/work_quantum.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

class BuildManager {
 public:
  using Clock = BuildJob::Clock;

  struct Options {
    // Maximum number of unfinished builds, including builds that still receive rows.
    int max_builds = 16;
    int64_t memory_bytes = int64_t{4} << 30;
    // Time for which a client may be silent before `finish`.
    absl::Duration idle_timeout = absl::Minutes(5);
    // Builds that compute at the same time; further ones wait in state queued. While fewer compute
    // they share as many threads.
    int compute_threads = 1;
    // Threads that take rows.
    int ingest_threads = 1;
    // Finds the services that compute remote kernels; outlives the manager. Null: none are listed.
    const KernelServices* kernels = nullptr;
    // Time for which a build stays this server's, in a store that several share, when its claim
    // cannot be renewed.
    absl::Duration lease = absl::Seconds(15);
    // Interval at which claims are renewed and builds of other servers are looked at; shorter than
    // `lease`.
    absl::Duration renew_every = absl::Seconds(1);
    std::function<Clock::time_point()> now = [] { return Clock::now(); };
    // Called on build threads, between tiles and between blocks, by each build that has worked for
    // `quantum` since it last called: lets Transforms pass. 0: before each tile and each block.
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
    // The id was known: the caller follows the job and sends nothing.
    bool attached = false;
  };
  // Starts a build or finds the one with this id. `done` is called exactly once, here or later on a
  // store thread. Errors: ALREADY_EXISTS (known with another spec), ABORTED (its stream is still
  // open), RESOURCE_EXHAUSTED (too many builds; one that can never fit into the memory, whatever
  // its rows), UNAVAILABLE (shutting down). REQUIRES: spec.Validate() is OK.
  // The version lives for `ttl` after its last use; a build with another one has another spec.
  void Begin(BuildId id, BuildSpec spec, std::function<void(absl::StatusOr<Attachment>)> done,
             absl::Duration ttl = absl::InfiniteDuration());
  // Takes a block of rows; one at a time for each job. `done` is called exactly once, mostly on a
  // build thread; `rows` stays readable until then. An error has ended the build.
  void Add(std::shared_ptr<BuildJob> job, ExamplesView rows,
           std::function<void(absl::Status)> done);
  // Whether the kernel of `spec` is computed here or by a service that is listed:
  // FAILED_PRECONDITION (KERNEL_SERVICE_NOT_LISTED, field "spec.kernel"). Begin makes this check
  // first.
  absl::Status CheckKernel(const BuildSpec& spec) const;
  // The stream is complete. DATA_LOSS (reason ROW_COUNT_MISMATCH) if another number of rows came,
  // which ends the build.
  absl::Status Finish(const std::shared_ptr<BuildJob>& job, int64_t row_count);
  // The stream broke, or is at fault. Ends the build with `error` if it was still receiving; else
  // nothing happens.
  void Abandon(const std::shared_ptr<BuildJob>& job, const absl::Status& error);

  // State of a build. Blocking. NOT_FOUND.
  absl::StatusOr<BuildSnapshot> Get(const BuildId& id);
  // Cancels a build that is not finished or publishing, and returns its state. Blocking. NOT_FOUND.
  absl::StatusOr<BuildSnapshot> Cancel(const BuildId& id);
  // Memory that unfinished builds may take together.
  int64_t memory_limit_bytes() const { return options_.memory_bytes; }
  int compute_threads() const { return options_.compute_threads; }
  // Returns the builds in memory, newest first; only builds of `mapping`, unless it is empty.
  std::vector<BuildSnapshot> List(absl::string_view mapping) const;

  // Returns the builds of this server, followed by the builds that other servers run. Blocking.
  absl::StatusOr<std::vector<BuildSnapshot>> ListAll(absl::string_view mapping) const;

  // Version `number` of a mapping was deleted, or all of them (nullopt): the builds that made them
  // are forgotten, as the store has forgotten them.
  void VersionsGone(absl::string_view mapping, std::optional<int64_t> number);

  // Resources that builds and imports share: their memory budget, and the time for which a client
  // may be silent.
  MemoryBudget& memory() { return memory_; }
  absl::Duration idle_timeout() const { return options_.idle_timeout; }

  // Ends builds whose client has been silent for idle_timeout: DEADLINE_EXCEEDED. A thread of the
  // manager calls it; so do tests, after moving the clock.
  void EndIdleBuilds();
  // Renews the claims of this server's builds, ends builds that another server took over (ABORTED)
  // or that were cancelled there, and refreshes the progress of builds that clients follow from
  // here. Called by a thread of the manager, and by tests. Blocking. REQUIRES: the store has
  // claims.
  void RenewClaims() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the end of builds whose server has been gone for two leases and whose client has left:
  // BUILD_INTERRUPTED. Errors as above.
  void EndBuildsOfTheDead();
  // Refuses new builds, waits until all are finished, and cancels (UNAVAILABLE) the others at
  // `deadline`. Blocking. Idempotent.
  void Drain(Clock::time_point deadline);

 private:
  struct Known {
    std::shared_ptr<BuildJob> job;
    int64_t sequence = 0;
    // Whether the published version may have been deleted before its end was noted: the store
    // knows.
    bool ask_store = false;
  };

  // Place where a build that has ended can be found.
  enum class Keep { kNothing, kInMemory, kInStore };
  // End of a build.
  struct Ending {
    BuildEvent event;
    absl::Status error;
    Keep keep;
    std::shared_ptr<const CertifiedVersion> version = nullptr;
  };

  // Answers a Build from the jobs in memory, or because the server is shutting down; nullopt:
  // neither knows the id.
  std::optional<absl::StatusOr<Attachment>> AttachToKnown(const BuildId& id,
                                                          const std::string& digest) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On a store thread: the store may know the id from before. A job is entered only if the store
  // does not know it: a question about a stored build takes no build's place.
  absl::StatusOr<Attachment> LookUp(const BuildId& id, const BuildOrder& order,
                                    const std::string& digest);
  // Claims the id of a job that was just entered, on a store thread; otherwise returns what its
  // owner permits.
  absl::StatusOr<Attachment> Claim(const std::shared_ptr<BuildJob>& job);
  absl::StatusOr<Attachment> AttachElsewhere(const BuildId& id, const std::string& digest,
                                             const BuildClaim& claim);
  absl::StatusOr<Attachment> AttachToStored(const BuildId& id, const std::string& digest,
                                            StoredBuild stored);
  // Undoes Enter, before other threads have seen the job.
  void GiveBack(const std::shared_ptr<BuildJob>& job, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the claim of a job that has ended released by the thread that renews them.
  void ReleaseSoon(const BuildJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseClaims() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteRenewal(const absl::Status& renewed);
  void FollowElsewhere() ABSL_LOCKS_EXCLUDED(mutex_);
  void LookElsewhere(BuildJob& job);
  // Takes over a claim whose lease has ended, and ends it with this record; without a record if
  // `error` is OK.
  absl::Status RecordForTheDead(const BuildClaim& claim, const absl::Status& error);
  absl::StatusOr<BuildSnapshot> GetElsewhere(const BuildId& id);
  absl::StatusOr<BuildSnapshot> CancelElsewhere(const BuildId& id);
  void WatchClaims();
  void CancelNow(const std::shared_ptr<BuildJob>& job);
  std::optional<BuildClaimant> ClaimantOf(const BuildJob& job) const;
  absl::StatusOr<StoredBuild> ReadStored(const BuildId& id);
  absl::StatusOr<Attachment> Enter(const BuildId& id, const BuildOrder& order,
                                   const std::string& digest) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndPending() ABSL_LOCKS_EXCLUDED(mutex_);
  // Submits a piece of the job's work, unless the job has ended.
  void Queue(JobQueue& queue, const std::shared_ptr<BuildJob>& job, JobQueue::Task task);
  // Removes the waiting work of a job that has ended from the queues.
  void Withdraw(const BuildJob& job);
  // On a build thread.
  void Run(const std::shared_ptr<BuildJob>& job);
  absl::StatusOr<CertifiedVersion> Publish(const BuildJob& job, BuiltVersion built);
  void Fail(const std::shared_ptr<BuildJob>& job, const absl::Status& error);
  void RecordFailure(const BuildJob& job, const absl::Status& error);
  // The only way a build ends: its id and place are free, or its result is kept, before observers
  // are notified. False, and nothing changes, when the event may not happen now.
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
  // Ids of remembered jobs, oldest first.
  std::deque<std::shared_ptr<BuildJob>> remembered_ ABSL_GUARDED_BY(mutex_);
  // Jobs that represent builds of other servers.
  std::vector<std::weak_ptr<BuildJob>> elsewhere_ ABSL_GUARDED_BY(mutex_);
  std::vector<BuildClaims::Renewal> to_release_ ABSL_GUARDED_BY(mutex_);
  int unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
  // Look-ups and ends that are under way: Drain waits for them.
  int pending_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::atomic<bool> renewals_fail_{false};

  // Last member: its threads end before everything that they use.
  JobQueue compute_queue_;
  JobQueue ingest_queue_;
  std::thread idle_watch_;
  // Runs only where the store has claims.
  std::thread claim_watch_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_MANAGER_H_
