// One build: its spec, the part of its stream that it keeps, its state, and its observers.
//
// Thread-safety: all methods may be called from any thread. The sample belongs to the one build
// thread between BeginWork and EndWork.
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
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/mapping/build/version_build.h"
#include "core/mapping/spec/build_spec.h"
#include "server/build/build_state.h"
#include "server/memory/memory_budget.h"
#include "server/observe/metrics.h"
#include "server/schedule/work_quantum.h"
#include "server/sync/mutex.h"
#include "server/versions/version_reader.h"

namespace phimap {

// A build's name: the client's UUID, scoped to the mapping.
struct BuildId {
  std::string mapping;
  std::string build_id;

  friend bool operator<(const BuildId& a, const BuildId& b) {
    return a.mapping != b.mapping ? a.mapping < b.mapping : a.build_id < b.build_id;
  }
};

// A client's order of a build.
struct BuildOrder {
  BuildSpec spec;
  // Time for which the version lives after its last use.
  absl::Duration ttl = absl::InfiniteDuration();

  BuildOrder() = default;
  BuildOrder(BuildSpec the_spec, absl::Duration the_ttl = absl::InfiniteDuration())  // NOLINT
      : spec(std::move(the_spec)), ttl(the_ttl) {}
  // Tells orders apart, for builds that are repeated.
  std::string Digest() const;
};

// State of a build at some moment.
struct BuildSnapshot {
  BuildId id;
  BuildState state = BuildState::kReceiving;
  int64_t rows_received = 0;
  std::string phase;
  double fraction = 0;
  // Estimated computing time left, from the progress so far; 0: not known.
  double seconds_left = 0;
  // Set when done.
  std::shared_ptr<const CertifiedVersion> version;
  // Set if the build failed or was cancelled; otherwise OK.
  absl::Status error;
};

// Told that a build has changed; reads Snapshot when it suits.
class BuildObserver {
 public:
  virtual ~BuildObserver() = default;
  // On the thread that changed the build, no lock held. Must not block.
  virtual void OnBuildChanged() = 0;
};

class BuildJob final : public BuildMonitor {
 public:
  using Clock = std::chrono::steady_clock;

  // The work of a build thread.
  struct Work {
    StreamSample sample;
    MemoryBudget::Reservation memory;
  };

  // A new build, receiving. The job yields by `quantum` between blocks and between tiles.
  BuildJob(BuildId id, BuildOrder order, std::string spec_digest, Clock::time_point now,
           WorkQuantum quantum, const BuildMetrics& metrics);
  // A build that ended before and was looked up, or that another server runs.
  BuildJob(BuildSnapshot snapshot, std::string spec_digest, const BuildMetrics& metrics);
  ~BuildJob() override;

  const BuildId& id() const { return id_; }
  const BuildSpec& spec() const { return order_.spec; }
  absl::Duration ttl() const { return order_.ttl; }
  const std::string& spec_digest() const { return spec_digest_; }
  BuildSnapshot Snapshot() const;
  // Tells `observer` of every change from now on, for as long as it lives.
  void Subscribe(std::weak_ptr<BuildObserver> observer);

  // Set when this job represents a build of another server.
  void ShowElsewhere(BuildSnapshot snapshot);
  // Whether a client would stream it again: it still receives, or a stream of this server waits.
  bool IsFollowed() const;
  // Since which taking this server has the build's claim; 0 while it has none.
  int64_t claim_epoch() const { return claim_epoch_.load(); }
  void set_claim_epoch(int64_t epoch) { claim_epoch_.store(epoch); }

  // Moves on; false, and nothing changes, when the event may not happen now. With kAbandon, kFail
  // and kCancel comes the error, with kPublished the version. Announce must follow: between the
  // two, the caller brings about the state that observers will be told.
  [[nodiscard]] bool Move(BuildEvent event, absl::Status error = absl::OkStatus(),
                          std::shared_ptr<const CertifiedVersion> version = nullptr);
  // Frees the memory that a finished build no longer needs, and notifies the observers. No lock may
  // be held.
  void Announce();
  // Sets both at once, for changes that do not end the build.
  [[nodiscard]] bool Apply(BuildEvent event);

  // Before a block, on the build thread that will take it: lets Transforms pass when it is time.
  void YieldIfDue() { quantum_.YieldIfDue(); }
  // Takes the sample for the calling build thread: a pointer to the job's work, which is empty
  // before the first block. Null when the build is finished; there is nothing to do then, and
  // EndWork is not called.
  std::optional<Work>* BeginWork();
  // Gives it back. If the build was finished meanwhile its memory is freed.
  void EndWork(Clock::time_point now, int64_t rows_added);
  // Time since which a client that should send has sent nothing; nullopt if no input is expected.
  std::optional<Clock::time_point> WaitingSince() const;

  // BuildMonitor. CANCELLED when the build was finished from outside.
  absl::Status Checkpoint(absl::string_view phase, double fraction) override;

 private:
  void NotifyObservers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts the time of the phase that ends here; "" is not a phase.
  void EnterPhase(absl::string_view phase) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double SecondsLeft(double fraction) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  prometheus::Gauge& Gauge(BuildState state) const;

  const BuildId id_;
  const BuildOrder order_;
  const std::string spec_digest_;
  const BuildMetrics& metrics_;
  std::atomic<int64_t> claim_epoch_{0};

  mutable Mutex mutex_;
  BuildSnapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  // Rows and share of the work in the last notification of observers.
  int64_t told_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  double told_fraction_ ABSL_GUARDED_BY(mutex_) = 0;
  // Name, in the metrics, of the time since phase_begin_.
  std::string timed_phase_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point phase_begin_ ABSL_GUARDED_BY(mutex_);
  // Start of computing.
  Clock::time_point computing_since_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<BuildObserver>> observers_ ABSL_GUARDED_BY(mutex_);
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point last_activity_ ABSL_GUARDED_BY(mutex_);

  // Owned by the working thread while working_, else guarded by mutex_.
  std::optional<Work> work_;
  // Used by the thread that works or is about to; there is one at a time.
  WorkQuantum quantum_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_JOB_H_
