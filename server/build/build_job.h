// One build: its spec, the part of its stream that it keeps, its state, and its observers.
//
// Thread-safe. Between BeginWork and EndWork, the sample belongs to the build thread that called
// BeginWork.
#ifndef PHIMAP_SERVER_BUILD_BUILD_JOB_H_
#define PHIMAP_SERVER_BUILD_BUILD_JOB_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/mapping/build/version_build.h"
#include "core/mapping/spec/build_spec.h"
#include "core/thread/mutex.h"
#include "core/train/training.h"
#include "server/admission/caller_shares.h"
#include "server/admission/change_origin.h"
#include "server/admission/memory_budget.h"
#include "server/admission/principal.h"
#include "server/build/version_reader.h"
#include "server/observe/metrics.h"
#include "server/registry/version_handle.h"
#include "server/schedule/job_queue.h"
#include "server/trace/span.h"

namespace phimap {

// States of a build, and the only transitions between them:
//
//   receiving ──finish──► queued ──start──► computing ──computed──► publishing ──published──► done
//    │      │               │                  │   │                     │
//    │      ├───────────────┴──────────────────┘   └──────────┬──────────┘
//    │      └── cancel ──► cancelled                          └── fail ──► failed
//    └── abandon ──► failed
//
// A broken stream ends its build only while the build is receiving: after `finish` a build outlives
// its client. A publishing build cannot be cancelled, because its version may become visible at any
// moment.
enum class BuildState {
  kReceiving,
  kQueued,
  kComputing,
  kPublishing,
  kDone,
  kFailed,
  kCancelled,
};

enum class BuildEvent {
  // The client's `finish`, with the right row count.
  kFinish,
  // A build thread takes the build.
  kStart,
  // The artifact has been computed.
  kComputed,
  // The store has the artifact.
  kPublished,
  // The stream broke or was invalid.
  kAbandon,
  // It could not be queued, computed or published.
  kFail,
  // CancelBuild was called, the server shuts down, or the claim was lost.
  kCancel,
};

// Returns the state after `event`, or nullopt if `event` is illegal in `state`.
std::optional<BuildState> NextState(BuildState state, BuildEvent event);

// Returns whether the build is done, failed or cancelled, and so will not change any more.
bool IsFinished(BuildState state);

// A build's name: the client's UUID, scoped to the mapping.
struct BuildId {
  std::string mapping;
  std::string build_id;

  friend bool operator<(const BuildId& a, const BuildId& b) {
    return a.mapping != b.mapping ? a.mapping < b.mapping : a.build_id < b.build_id;
  }
};

// A client's request to train a head, on a version or on features that it builds.
struct TrainingOrder {
  // Null if `features` is set.
  VersionHandle version;
  std::optional<FeaturesOrder> features;
  TrainingSpec spec;
};

// A client's request for a build.
struct BuildOrder {
  BuildSpec spec;
  // In place of `spec`: the build trains a head. Null for other builds.
  std::shared_ptr<const TrainingOrder> training = nullptr;
  // How long the version lives after its last use.
  absl::Duration ttl = absl::InfiniteDuration();
  // Who ordered it. Not part of the digest.
  CallerPointer caller = nullptr;
  PrincipalPointer principal = nullptr;
  ChangeOrigin origin = {};
  // The span of the call that ordered it; its phases become children, also when the call is over.
  SpanContext span = {};

  BuildOrder() = default;
  BuildOrder(BuildSpec the_spec, absl::Duration the_ttl = absl::InfiniteDuration())  // NOLINT
      : spec(std::move(the_spec)), ttl(the_ttl) {}
  // Returns a digest of the order. Two Build calls with the same id are the same request if their
  // digests are equal.
  std::string Digest() const;
};

// State of a build at some moment.
struct BuildSnapshot {
  BuildId id;
  BuildState state = BuildState::kReceiving;
  int64_t rows_received = 0;
  std::string phase;
  double fraction = 0;
  // Estimated computing time left, extrapolated from the progress so far. 0 if not known.
  double seconds_left = 0;
  // Set if the build is done.
  std::shared_ptr<const CertifiedVersion> version;
  // Not OK if the build failed or was cancelled.
  absl::Status error;
  // The name of the caller who ordered it; "" if it has none, or the build was read from the store.
  std::string owner = {};
  // Place in a list, which has larger numbers first. Set only in lists.
  int64_t order = 0;
};

// Is notified when a build has changed, and may read Snapshot at any later time.
class BuildObserver {
 public:
  virtual ~BuildObserver() = default;
  // Called on the thread that changed the build, with no lock held. Must not block.
  virtual void OnBuildChanged() = 0;
};

class BuildJob final : public BuildMonitor {
 public:
  using Clock = std::chrono::steady_clock;

  // The data that a build thread works on. Declared so that the memory is freed before its
  // reservation is.
  struct Work {
    MemoryBudget::Reservation memory;
    // Bytes that a training has reserved so far: its needs grow with its rows.
    int64_t reserved_bytes = 0;
    std::variant<StreamSample, std::unique_ptr<Training>> rows;
  };

  // Creates a new build in state kReceiving. Between blocks and between tiles, the job yields
  // whenever `quantum` is used up.
  BuildJob(BuildId id, BuildOrder order, std::string spec_digest, Clock::time_point now,
           WorkQuantum quantum, const BuildMetrics& metrics);
  // Represents a build that has ended and was read from the store, or that another server runs.
  BuildJob(BuildSnapshot snapshot, std::string spec_digest, const BuildMetrics& metrics);
  ~BuildJob() override;

  const BuildId& id() const { return id_; }
  const BuildOrder& order() const { return order_; }
  absl::Duration ttl() const { return order_.ttl; }
  const std::string& spec_digest() const { return spec_digest_; }
  BuildSnapshot Snapshot() const;
  // Notifies `observer` of every change from now on, for as long as the observer lives.
  void Subscribe(std::weak_ptr<BuildObserver> observer);

  // Replaces the snapshot of a job that represents another server's build, and notifies observers.
  void ShowElsewhere(BuildSnapshot snapshot);
  // Returns whether a client could stream the build again: the build still receives rows, or a
  // stream on this server waits for its result.
  bool IsFollowed() const;
  // Epoch of this server's claim on the build; 0 while this server holds no claim.
  int64_t claim_epoch() const { return claim_epoch_.load(); }
  void set_claim_epoch(int64_t epoch) { claim_epoch_.store(epoch); }
  // Its place among the unfinished builds; empty when it has ended. Only BuildManager sets it, with
  // its lock held.
  void SetPlace(SharedPlaces::Place place) { place_ = std::move(place); }

  // Changes the state. Returns false, and changes nothing, if `event` is illegal in the current
  // state. kAbandon, kFail and kCancel need `error`, kPublished needs `version`. The caller must
  // call Announce afterwards. Before that, the caller must make true what observers conclude from
  // the new state, for example that the id of a failed build is free.
  [[nodiscard]] bool Move(BuildEvent event, absl::Status error = absl::OkStatus(),
                          std::shared_ptr<const CertifiedVersion> version = nullptr);
  // Frees the memory that a finished build no longer needs, and notifies the observers. The caller
  // must hold no lock.
  void Announce();
  // Calls Move and Announce, for changes that do not end the build.
  [[nodiscard]] bool Apply(BuildEvent event);

  // Yields to Transforms if the quantum is used up. Called before a block, by the build thread that
  // will add it.
  void YieldIfDue() { quantum_.YieldIfDue(); }
  // Gives the calling build thread exclusive use of the job's work, which is empty before the first
  // block. Returns null if the build has finished; then there is nothing to do, and EndWork must
  // not be called.
  std::optional<Work>* BeginWork();
  // Ends the exclusive use that BeginWork gave. Frees the work if the build has finished meanwhile.
  void EndWork(Clock::time_point now, int64_t rows_added);
  // Returns the time since which a client that should send rows has been silent, or nullopt if the
  // build is not waiting for rows.
  std::optional<Clock::time_point> WaitingSince() const;

  // BuildMonitor. Returns CANCELLED if the build has already ended, for example by CancelBuild.
  absl::Status Checkpoint(absl::string_view phase, double fraction) override;

 private:
  void NotifyObservers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the duration of the current phase and starts `phase`; "" means no phase.
  void EnterPhase(absl::string_view phase) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins the span of timed_phase_, and ends the one before. REQUIRES: the build is traced.
  void TracePhase() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double SecondsLeft(double fraction) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  prometheus::Gauge& Gauge(BuildState state) const;

  const BuildId id_;
  const BuildOrder order_;
  const std::string spec_digest_;
  const BuildMetrics& metrics_;
  std::atomic<int64_t> claim_epoch_{0};
  SharedPlaces::Place place_;

  mutable Mutex mutex_;
  BuildSnapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  // Rows and fraction of the work at the last notification of observers.
  int64_t told_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  double told_fraction_ ABSL_GUARDED_BY(mutex_) = 0;
  // Name under which the metrics count the time since phase_begin_.
  std::string timed_phase_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point phase_begin_ ABSL_GUARDED_BY(mutex_);
  // The phase since phase_begin_, if the build is traced.
  Span phase_span_ ABSL_GUARDED_BY(mutex_);
  // Time at which computing started.
  Clock::time_point computing_since_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<BuildObserver>> observers_ ABSL_GUARDED_BY(mutex_);
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point last_activity_ ABSL_GUARDED_BY(mutex_);

  // Owned by the working thread while working_ is true, else guarded by mutex_.
  std::optional<Work> work_;
  // Used only by the thread that works or is about to; there is at most one at a time.
  WorkQuantum quantum_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_JOB_H_
