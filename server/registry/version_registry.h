// The registry of live versions: from a reference to a version that is ready to serve.
//
// Guarantees: a version in memory is found at once, on the calling thread and without touching the
// disk (about a microsecond). Any other is loaded on the loader thread, once for all callers that
// want it meanwhile, and their callbacks run there. A version that cannot be loaded is an error for
// its callers (DATA_LOSS if it is damaged) and does not affect the others. Memory of live versions
// stays under the limit. No answer contradicts a change that CatchUp reported before the question:
// an alias that moved means its new version, and a deleted version is not found, even if it was
// being loaded meanwhile. Versions that aliases name are evicted after all others, and WarmAliases
// keeps them loaded as far as they fit. Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/kernel_client/kernel_services.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/registry/alias_warming.h"
#include "server/registry/catalog_view.h"
#include "server/registry/live_versions.h"
#include "server/registry/load_line.h"
#include "server/registry/reference.h"
#include "server/registry/remembered_records.h"
#include "server/registry/version_handle.h"
#include "server/registry/version_loader.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

class VersionRegistry {
 public:
  struct Options {
    int64_t max_live_bytes = int64_t{4} << 30;
    // Different versions that may wait to be loaded.
    int max_queued_loads = 256;
    // Requests that may wait for one version.
    int max_waiters = 4096;
    // VersionLoader; outlives the registry.
    const KernelServices* kernels = nullptr;
    // Called after an alias moved, came or went, or its version was loaded; without a lock but
    // CatchUp's, which it must not call. May be empty.
    std::function<void(VersionRegistry&, absl::string_view mapping, absl::string_view alias)>
        alias_changed;
    // Called on the loader thread before it reads an artifact; for tests. May be empty.
    std::function<void()> before_load;
  };
  using Callback = std::function<void(absl::StatusOr<VersionHandle>)>;

  // `store`, `metrics` and `logger` outlive the registry.
  VersionRegistry(Options options, Store& store, const RegistryMetrics& metrics,
                  const Logger& logger);
  // Finishes the loads that callers wait for, then returns; background loads are dropped.
  ~VersionRegistry();
  VersionRegistry(const VersionRegistry&) = delete;
  VersionRegistry& operator=(const VersionRegistry&) = delete;

  // Calls `done` exactly once: on this thread if the answer is known, otherwise later on the loader
  // thread. Errors: INVALID_ARGUMENT (not a reference), NOT_FOUND, DATA_LOSS, RESOURCE_EXHAUSTED
  // (too many wait; the version does not fit), and those of the store.
  void Acquire(absl::string_view reference, Callback done) {
    Acquire(reference, LoadPriority::kLast, std::move(done));
  }
  // Acquires with a place in the queue: administration waits for one load of a reader at most, and
  // is not refused because many wait.
  void Acquire(absl::string_view reference, LoadPriority priority, Callback done);

  // The version if it is in memory; empty otherwise. Never waits.
  VersionHandle FindLive(absl::string_view mapping, int64_t number);
  // Finds the version that `reference` means, as far as that is known.
  VersionHandle FindLive(const Reference& reference);

  // All versions in memory, by name and number. The call does not count as a use.
  std::vector<VersionHandle> AllLive();

  // Called by users of a version that do not count requests of it (VersionTally).
  void NoteUse(const VersionHandle& version) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the versions that were used since the last TakeUses: those of NoteUse, and those that
  // were loaded for callers.
  std::set<VersionName> TakeUses() ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads changes of names from the store; call after each change and before the first Acquire.
  // Holders of a deleted version keep it. Blocking. Errors: those of the store, which are logged;
  // names keep their meaning until the next call, or until a caller asks for an unknown name.
  absl::Status CatchUp() {
    return CatchUp([this](const Revision& since) { return store_.ChangesSince(since); });
  }
  // Catches up over another connection to the same catalog, with its own time limits.
  absl::Status CatchUp(CatalogView::Source source);

  // Names are known up to this revision.
  Revision revision() const { return view_.revision(); }
  // Like revision(), if CatchUp has not failed since it last succeeded: changes made before that
  // failure may be missing from it.
  std::optional<Revision> revision_with_own_changes() ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on loads the versions that aliases name, in the background and with the lowest
  // priority: first the current ones, beginning with the alias that was moved last, and later the
  // new version of an alias as soon as CatchUp reports it. A version that does not fit beside those
  // of other aliases, or that cannot be loaded, is skipped and loaded when a caller asks for it.
  // REQUIRES: CatchUp succeeded once.
  void WarmAliases() ABSL_LOCKS_EXCLUDED(mutex_);
  // Skips the remaining background loads.
  void StopWarming() ABSL_LOCKS_EXCLUDED(mutex_);
  // Versions that are still to be loaded in the background, or passed over.
  int64_t warming() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when there are none left, or at `deadline`.
  enum class Warmth { kWarm, kLate, kStopped };
  Warmth AwaitWarm(std::chrono::steady_clock::time_point deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = LoadKey;

  // A caller that waits for a load.
  struct Waiting {
    std::vector<Callback> callbacks;
    // False while it is loaded in the background alone.
    bool for_readers = false;
  };
  // State at the beginning of a load.
  struct Attempt {
    uint64_t news = 0;
    bool for_readers = false;
    // False for a background load that no alias and no caller wants any longer.
    bool wanted = true;

    Eviction eviction() const { return for_readers ? Eviction::kPinnedLast : Eviction::kUnpinned; }
  };

  // Answers without the disk if possible; nullopt: load `key`.
  std::optional<absl::StatusOr<VersionHandle>> Resolve(absl::string_view text, Key& key)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EnqueueLoad(const Key& key, LoadPriority priority, Callback done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends a key to the line, or moves it to the front part. RESOURCE_EXHAUSTED if the line is
  // full.
  absl::Status LineUp(const Key& key, LoadPriority priority, bool waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On the loader thread: the next of the line.
  void RunNextLoad();
  // Empty if another thread took it already.
  std::optional<Key> TakeNext() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Key> TakeWarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On the loader thread: sorts the versions that WarmAliases found.
  void SortWarmLine() ABSL_LOCKS_EXCLUDED(mutex_);
  // Submits the loader's task for the versions in warm_line.h; one exists while the line has
  // versions.
  void SubmitWarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Loaded = std::shared_ptr<const LiveVersion>;
  // On the loader thread.
  void RunLoad(const Key& key);
  // The version that `key` means, live or else read; `last` is the result of the previous read.
  // `number` becomes that of the version, when it is found, also if it cannot be loaded.
  absl::StatusOr<Loaded> LoadVersion(const Key& key, const Attempt& attempt, const Loaded& last,
                                     int64_t& number);
  Attempt BeginAttempt(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);
  // The record of the version that `key` means, from the view, or from the store if the view does
  // not know it.
  absl::StatusOr<VersionRecord> LookUp(const Key& key);
  // Record of a version that the view knows, remembered or read.
  absl::StatusOr<VersionRecord> RecordOf(const std::string& mapping, int64_t number)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Loaded> LoadRecord(const VersionRecord& record, Eviction eviction);
  // On the loader thread, before a load: returns the memory of evicted versions to the system.
  void ReturnFreedMemory() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status FreeCapacity(const VersionRecord& record, int64_t bytes, Eviction eviction)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes `loaded` live, and removes the callers that wait for `key`. False, and nothing is done,
  // if names changed since the attempt began, so that `key` may mean something else now, or if it
  // failed and a reader came, for whom more can be tried.
  bool Conclude(const Key& key, const Attempt& attempt, const absl::StatusOr<Loaded>& loaded,
                std::vector<Callback>& waiters) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a version that was known is there still, and the same.
  bool HasSame(const MappingNames& now, int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Retire(const std::string& mapping, int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called by the view.
  void NamesChanged(const MappingNames& before, const MappingNames& now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void TellAliasChanged(absl::string_view mapping, absl::string_view alias)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records how the CatchUp of this number ended.
  void NoteCatchUp(int64_t number, bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void LogFailure(const Key& key, int64_t number, const Attempt& attempt,
                  const absl::Status& error);
  void UpdateMetrics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Store& store_;
  const RegistryMetrics& metrics_;
  const Logger& logger_;
  const VersionLoader version_loader_;
  CatalogView view_;

  Mutex mutex_;
  LiveVersions live_ ABSL_GUARDED_BY(mutex_);
  RememberedRecords records_ ABSL_GUARDED_BY(mutex_);
  // For TakeUses.
  std::set<VersionName> uses_ ABSL_GUARDED_BY(mutex_);
  // Calls of CatchUp that began, and how many had when one last failed.
  int64_t catch_ups_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t behind_since_ ABSL_GUARDED_BY(mutex_) = 0;
  // Counts mappings whose names changed.
  uint64_t news_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  // The loader has a task for each key, and at most one for what is to be warm.
  LoadLine load_line_ ABSL_GUARDED_BY(mutex_);
  AliasWarming warming_ ABSL_GUARDED_BY(mutex_);
  CondVar warmed_;
  int64_t counted_evictions_ ABSL_GUARDED_BY(mutex_) = 0;
  // Evictions whose memory was given back.
  int64_t returned_evictions_ ABSL_GUARDED_BY(mutex_) = 0;

  // One thread: at most one artifact is being unpacked at a time. Last, so that it ends first.
  TaskPool loader_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
