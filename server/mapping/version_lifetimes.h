// Keeps versions alive while they are used: records uses every few seconds, and deletes expired
// versions every minute. It runs on its own thread, not in calls: uses are read from counters that
// exist anyway.
//
// A use is a request to map rows, an evaluation, or a load for a caller. One that is evicted
// between two looks was loaded at most a period before its last use.
//
// If servers share a store, each of them deletes: a transaction that finds nothing changes nothing.
#ifndef PHIMAP_SERVER_MAPPING_VERSION_LIFETIMES_H_
#define PHIMAP_SERVER_MAPPING_VERSION_LIFETIMES_H_

#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/mapping/mapping_changes.h"
#include "server/observe/log.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

// Thread-safe.
class VersionLifetimes {
 public:
  // Short beside a tenth of kLeastTtl.
  static constexpr std::chrono::seconds kRecordPeriod{5};
  static constexpr std::chrono::seconds kDeletePeriod{60};

  // All arguments must outlive this object.
  VersionLifetimes(Store& store, VersionRegistry& registry, MappingChanges& changes,
                   const Logger& logger)
      : store_(store), registry_(registry), changes_(changes), logger_(logger) {}
  // Waits for one call of the store at most.
  ~VersionLifetimes();
  VersionLifetimes(const VersionLifetimes&) = delete;
  VersionLifetimes& operator=(const VersionLifetimes&) = delete;

  // Does both from now on, each in its period.
  void Start();

  // Records the uses since the last successful call. Blocking. Errors: those of the store.
  absl::Status RecordUses() ABSL_LOCKS_EXCLUDED(recording_);
  // Deletes expired versions. Blocking. Errors: those of the store.
  absl::Status DeleteExpired();

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  void LogFailure(const absl::Status& status);
  // False when it is to stop.
  bool AwaitTime(Clock::time_point end) ABSL_LOCKS_EXCLUDED(mutex_);

  Store& store_;
  VersionRegistry& registry_;
  MappingChanges& changes_;
  const Logger& logger_;

  Mutex recording_;
  // Time until which uses are recorded, on the clock of VersionTally, and the uses that remain to
  // be recorded.
  absl::Time recorded_until_ ABSL_GUARDED_BY(recording_) = absl::InfinitePast();
  std::set<VersionName> noted_ ABSL_GUARDED_BY(recording_);

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_VERSION_LIFETIMES_H_
