// Keeps versions alive while they are used: records uses every few seconds, and deletes expired
// versions every minute. Runs on its own thread rather than in calls, because it can read the uses
// from counters that exist anyway.
//
// A use is a request to map rows, an evaluation, or a load for a caller. If a version is evicted
// between two recordings, its requests since the earlier recording are lost, but its load is
// recorded. So its recorded last use is at most one period too early.
//
// If several servers share a store, each of them deletes expired versions. A transaction that finds
// no expired version changes nothing.
#ifndef PHIMAP_SERVER_MAPPING_VERSION_LIFETIMES_H_
#define PHIMAP_SERVER_MAPPING_VERSION_LIFETIMES_H_

#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "server/mapping/mapping_changes.h"
#include "server/observe/log.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"

namespace phimap {

// Thread-safe.
class VersionLifetimes {
 public:
  // Must be shorter than a tenth of kLeastTtl.
  static constexpr std::chrono::seconds kRecordPeriod{5};
  static constexpr std::chrono::seconds kDeletePeriod{60};

  // All arguments must outlive this object.
  VersionLifetimes(Store& store, VersionRegistry& registry, MappingChanges& changes,
                   const Logger& logger)
      : store_(store), registry_(registry), changes_(changes), logger_(logger) {}
  // Waits for the store calls in progress, and for a final store call that records the last uses.
  ~VersionLifetimes();
  VersionLifetimes(const VersionLifetimes&) = delete;
  VersionLifetimes& operator=(const VersionLifetimes&) = delete;

  // Starts the thread that records uses and deletes expired versions periodically.
  void Start();

  // Records the uses since the last call that succeeded. Blocking. Returns errors of the store.
  absl::Status RecordUses() ABSL_LOCKS_EXCLUDED(recording_);
  // Deletes expired versions. Blocking. Returns errors of the store.
  absl::Status DeleteExpired();

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  void LogFailure(const absl::Status& status);
  // Waits until `end`. Returns false if the object is being destroyed.
  bool AwaitTime(Clock::time_point end) ABSL_LOCKS_EXCLUDED(mutex_);

  Store& store_;
  VersionRegistry& registry_;
  MappingChanges& changes_;
  const Logger& logger_;

  Mutex recording_;
  // Time up to which uses have been recorded, on the clock of VersionTally, and the uses from
  // TakeUses that are still to be recorded.
  absl::Time recorded_until_ ABSL_GUARDED_BY(recording_) = absl::InfinitePast();
  std::set<VersionName> noted_ ABSL_GUARDED_BY(recording_);

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_VERSION_LIFETIMES_H_
