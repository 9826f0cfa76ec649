// Tests the rows that are served for drift, for each alias.
//
// A request of a version that an alias names gives a row now and then (RowSampling): at most ten a
// second for each version, and about a hundred a second in all. The row is copied on the thread
// that answers. Everything else happens on one thread of the lowest priority: the row is scored
// (core/drift), and each alias of the version adds it to its own test.
//
// A test begins when its alias is known to name its version, and anew when the alias moves to
// another version. It is kept in memory only, so it begins anew with the process too.
//
// Thread-safe.
#ifndef PHIMAP_SERVER_DRIFT_DRIFT_WATCHER_H_
#define PHIMAP_SERVER_DRIFT_DRIFT_WATCHER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/drift/drift_monitor.h"
#include "core/plan/examples.h"
#include "core/plan/rows.h"
#include "core/thread/mutex.h"
#include "server/observe/drift_metrics.h"
#include "server/observe/log.h"
#include "server/registry/version_handle.h"
#include "server/registry/version_registry.h"
#include "server/schedule/job_queue.h"

namespace phimap {

// What is known about an alias.
struct AliasDrift {
  std::string alias;
  int64_t version = 0;
  // Why the alias is not tested; empty if it is. The fields below are then unset.
  std::string not_tested;
  SequentialTestSpec promise;
  int64_t rows = 0;
  int64_t rows_not_finite = 0;
  double evidence = 0;
  // Time at which the evidence last reached 1.
  std::optional<absl::Time> crossed;
  // The scores with evidence, those with most of it first.
  std::vector<std::pair<ScoreFunction, ScoreEvidence>> scores;
  // Number of rows that the figures below describe.
  int64_t counted_rows = 0;
  std::optional<ShiftSize> shift;
  double share_beyond = 0;
  double expected_beyond = 0;
  std::vector<ColumnBeyond> columns;
};

class DriftWatcher {
 public:
  struct Limits {
    // Shortest time between two sampled rows of a version, and of all versions together.
    absl::Duration interval = absl::Milliseconds(100);
    absl::Duration interval_of_all = absl::Milliseconds(10);
    // Largest memory of all tests, and of rows that wait to be tested.
    int64_t test_bytes = int64_t{64} << 20;
    int64_t waiting_bytes = int64_t{4} << 20;
    int64_t waiting_rows = 64;
    SequentialTestSpec promise = {};
  };

  // `metrics` and `logger` must outlive the watcher.
  DriftWatcher(const Limits& limits, DriftMetrics& metrics, const Logger& logger);
  // Tests the rows that wait.
  ~DriftWatcher() = default;

  // Called when the alias has changed, or its version was loaded. Begins, keeps or ends the alias's
  // test, by what `registry` now knows about the alias.
  void Refresh(VersionRegistry& registry, absl::string_view mapping, absl::string_view alias)
      ABSL_LOCKS_EXCLUDED(refreshing_, mutex_);

  // Takes one row of a request if one is due at `now`. `rows` are the rows as the engine got them,
  // and `features` their features. Never waits for a test.
  void Sample(const VersionHandle& version, const ExamplesView& rows, const RowsView& features,
              absl::Time now) {
    if (version.sampling().IsDue(now)) Take(version, rows, features);
  }

  // Returns what is known about the aliases of a mapping whose versions are in memory, by name.
  std::vector<AliasDrift> Of(absl::string_view mapping) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until all rows that were taken before are tested. For tests.
  void AwaitTested();

 private:
  using Key = std::pair<std::string, std::string>;  // mapping, alias

  class SampledRow;

  struct Watch {
    int64_t version = 0;
    std::string digest;
    // Null if the alias is not tested, for the reason `not_tested`.
    std::unique_ptr<DriftMonitor> monitor;
    std::string not_tested;
    std::optional<absl::Time> crossed;
    bool is_over = false;
  };

  void Take(const VersionHandle& version, const ExamplesView& rows, const RowsView& features);
  void Test(const SampledRow& row) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the row to the tests of the version's aliases, and returns the interval at which the
  // version is to be sampled. Returns nullopt if it has no tested alias.
  std::optional<absl::Duration> AddToTests(const VersionRecord& version, const ScoredRow& scored)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Watch Begin(const VersionHandle& version) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Show(const Key& key, Watch& watch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the interval at which each version is sampled, so that all versions together give at
  // most about a hundred rows a second.
  absl::Duration Interval() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  DriftMetrics& metrics_;
  const Logger& logger_;
  // Held until an answer of the registry is used, so that no other thread asks in between.
  Mutex refreshing_ ABSL_ACQUIRED_BEFORE(mutex_);
  Mutex mutex_;
  std::map<Key, Watch> watches_ ABSL_GUARDED_BY(mutex_);
  // Not guarded: Take runs on event loops, which must not wait for the test's thread.
  std::atomic<int64_t> waiting_rows_{0};
  std::atomic<int64_t> waiting_bytes_{0};
  std::atomic<uint64_t> samples_{0};
  // Declared last, so that its thread ends first.
  JobQueue thread_{1};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_DRIFT_DRIFT_WATCHER_H_
