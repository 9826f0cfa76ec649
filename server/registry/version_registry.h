// The registry of live versions: finds or loads the version that a reference means.
//
// Guarantees:
// - A version in memory is found at once (about a microsecond), on the calling thread and without
//   access to the disk.
// - Any other version is loaded on the loader thread, once for all callers that want it meanwhile.
//   Their callbacks run on that thread.
// - If a version cannot be loaded, its callers get an error (DATA_LOSS if the version is damaged),
//   and other versions are not affected.
// - The memory of live versions stays under the limit. Versions that aliases point to are evicted
//   after all others, and WarmAliases keeps them loaded as far as they fit.
// - Each answer reflects all changes that CatchUp reported before the request. An alias that moved
//   means its new version. A deleted version is not found, even if it was being loaded at the time
//   of the deletion.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
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
#include "core/plan/plan.h"
#include "core/thread/mutex.h"
#include "server/kernel_client/kernel_service.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/registry/catalog_view.h"
#include "server/registry/known_names.h"
#include "server/registry/live_versions.h"
#include "server/registry/reference.h"
#include "server/registry/version_handle.h"
#include "server/schedule/task_pool.h"
#include "server/store/records.h"
#include "server/store/store.h"

namespace phimap {

// Place of a load in the queue: at the end, for readers, or before all readers' loads, for
// administration.
enum class LoadPriority { kLast, kFirst };

// A reference that owns its text, and what is wanted of the version.
struct LoadKey {
  std::string mapping;
  // 0 if the reference is not by number.
  int64_t number = 0;
  std::string alias = {};
  std::string digest = {};
  LivePart part = LivePart::kFeatures;

  static LoadKey Of(const Reference& reference, LivePart part);
  Reference reference() const;
  bool by_number() const { return number != 0; }
  friend auto operator<=>(const LoadKey& a, const LoadKey& b) = default;
};

// The queue of references that wait to be loaded. Not thread-safe; the registry guards it.
class LoadQueue {
 public:
  void Push(LoadKey key, LoadPriority priority) {
    (priority == LoadPriority::kFirst ? first_ : last_).push_back(std::move(key));
  }
  // Moves a waiting key to the loads of administration at the front. No-op for a key that is being
  // loaded.
  void Advance(const LoadKey& key);
  // Removes and returns the next key; empty if there is none.
  std::optional<LoadKey> Take();
  // Number of waiting keys that were pushed with kLast.
  int64_t last_size() const { return static_cast<int64_t>(last_.size()); }

 private:
  std::deque<LoadKey> first_;
  std::deque<LoadKey> last_;
};

// A cache of the records of existing versions. Records do not change, so those in the cache can be
// used while the database is unavailable. When the cache is full, a record is dropped for each new
// one. Not thread-safe; the registry guards it.
class RememberedRecords {
 public:
  // Returns null if the record is not in the cache.
  const VersionRecord* Find(const std::string& mapping, int64_t number) const {
    const auto found = records_.find({mapping, number});
    return found == records_.end() ? nullptr : &found->second;
  }
  void Remember(const VersionRecord& record) {
    if (records_.size() >= kMaxRecords) records_.erase(records_.begin());
    records_.emplace(std::make_pair(record.mapping, record.number), record);
  }
  std::vector<VersionRecord> All() const {
    std::vector<VersionRecord> all;
    for (const auto& [name, record] : records_) all.push_back(record);
    return all;
  }
  void Forget(const std::string& mapping, int64_t number) { records_.erase({mapping, number}); }

 private:
  // A record takes half a kilobyte.
  static constexpr size_t kMaxRecords = 10'000;

  std::map<std::pair<std::string, int64_t>, VersionRecord> records_;
};

// Loads a version from its record, so that it is ready to serve. Immutable, thread-safe.
class VersionLoader {
 public:
  // `store`, `metrics` and `kernels` must outlive the loader. `kernels` finds the services that
  // compute remote kernels; null if none are listed.
  VersionLoader(Store& store, const RegistryMetrics& metrics, const KernelServices* kernels)
      : store_(store), metrics_(metrics), kernels_(kernels) {}

  // Reads the artifact, decodes it and packs what `part` takes. Blocking. Errors: those of the
  // store, of DecodeArtifact and of Engine::Load; KERNEL_SERVICE_NOT_LISTED; RESOURCE_EXHAUSTED
  // (MACHINE_MEMORY_FULL); FAILED_PRECONDITION (HEAD_MISSING) for answers of a version without a
  // head.
  absl::StatusOr<std::shared_ptr<const LiveVersion>> Load(const VersionRecord& record,
                                                          LivePart part) const;

 private:
  absl::StatusOr<std::shared_ptr<const LiveVersion>> Unpack(const VersionRecord& record,
                                                            LivePart part) const;
  // Returns a queue to the service that computes the plan's kernel, or null if the kernel is not
  // remote.
  absl::StatusOr<std::shared_ptr<KernelQueue>> KernelOf(const Plan& plan, bool want_diagonal) const;

  Store& store_;
  const RegistryMetrics& metrics_;
  const KernelServices* const kernels_;
};

// Returns what is known of the head of a version; null if it has none. Blocking. Errors: those of
// the store; DATA_LOSS if the data read is damaged.
absl::StatusOr<std::shared_ptr<const HeadFacts>> ReadHeadFacts(Store& store,
                                                               const VersionRecord& record);

class VersionRegistry {
 public:
  struct Options {
    int64_t max_live_bytes = int64_t{4} << 30;
    // Maximum number of different versions that wait to be loaded.
    int max_queued_loads = 256;
    // Maximum number of requests that wait for one version.
    int max_waiters = 4096;
    // Passed to the VersionLoader. Must outlive the registry.
    const KernelServices* kernels = nullptr;
    // Called after an alias was moved, created or deleted, or its version was loaded. Called
    // without any lock except CatchUp's, so it must not call CatchUp. May be empty.
    std::function<void(VersionRegistry&, absl::string_view mapping, absl::string_view alias)>
        alias_changed;
    // Called on the loader thread before it reads an artifact; for tests. May be empty.
    std::function<void()> before_load;
  };
  using Callback = std::function<void(absl::StatusOr<VersionHandle>)>;

  // `store`, `metrics` and `logger` must outlive the registry.
  VersionRegistry(Options options, Store& store, const RegistryMetrics& metrics,
                  const Logger& logger);
  // Finishes the loads that callers wait for. Drops background loads.
  ~VersionRegistry();
  VersionRegistry(const VersionRegistry&) = delete;
  VersionRegistry& operator=(const VersionRegistry&) = delete;

  // Calls `done` exactly once: on this thread if the answer is known, otherwise later on the loader
  // thread. Errors: INVALID_ARGUMENT (not a reference), NOT_FOUND, DATA_LOSS, RESOURCE_EXHAUSTED
  // (too many wait; the version does not fit), and those of the store.
  void Acquire(absl::string_view reference, Callback done) {
    Acquire(reference, LivePart::kFeatures, LoadPriority::kLast, std::move(done));
  }
  // Like the function above, for another part of the version, and with a place in the queue. An
  // administrative load waits for at most one load of a reader, and is not rejected because too
  // many requests wait.
  void Acquire(absl::string_view reference, LivePart part, LoadPriority priority, Callback done);

  // Returns the version if it is in memory, and an empty handle otherwise. Never waits.
  VersionHandle FindLive(absl::string_view mapping, int64_t number);
  // Returns the version that `reference` means according to the names known here, if it is in
  // memory.
  VersionHandle FindLive(const Reference& reference);

  // Returns all parts of versions in memory, by name, number and part. The call does not count as a
  // use.
  std::vector<VersionHandle> AllLive();

  // Records a use of a version. For users whose requests are not counted by the version's
  // VersionTally.
  void NoteUse(const VersionHandle& version) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the versions that were used since the last TakeUses: those that were passed to NoteUse,
  // and those that were loaded for callers.
  std::set<VersionName> TakeUses() ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads changes of names from the store. Call it after each change and before the first Acquire.
  // Holders of a deleted version keep it. Blocking.
  //
  // Errors: those of the store, which are logged. After an error, names keep their meaning until
  // the next call, or until a caller asks for an unknown name.
  absl::Status CatchUp() {
    return CatchUp([this](const Revision& since) { return store_.ChangesSince(since); });
  }
  // Catches up over another connection to the same catalog, with its own time limits.
  absl::Status CatchUp(CatalogView::Source source);

  // Returns what is known of names, for a file, and a number that grows whenever that may have
  // changed.
  KnownNames Known() ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t known_changes() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(news_) + remembered_;
  }
  // Takes names from a file, until the store can be asked. REQUIRES: CatchUp has not succeeded yet.
  absl::Status Recall(KnownNames names) ABSL_LOCKS_EXCLUDED(mutex_);

  // Revision up to which changes of names are known.
  Revision revision() const { return view_.revision(); }
  // See CatalogView.
  std::string IdOfPassed(int64_t number) const { return view_.IdOfPassed(number); }
  int64_t history_breaks() const { return view_.breaks(); }
  // Returns revision(), or nullopt if CatchUp has failed and has not succeeded since: the revision
  // may then lack changes that this server made before the failure.
  std::optional<Revision> revision_with_own_changes() ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes Options::max_live_bytes, and unloads versions until the new limit is kept, unless they
  // are in use.
  void SetMaxLiveBytes(int64_t max_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts to load the versions that aliases point to, in the background and with the lowest
  // priority. The current versions come first, beginning with that of the alias that was moved
  // last. Later, when CatchUp reports that an alias has moved, its new version is loaded.
  //
  // A version is skipped if it cannot be loaded or does not fit beside the versions of other
  // aliases. It is then loaded when a caller asks for it. REQUIRES: CatchUp succeeded once.
  void WarmAliases() ABSL_LOCKS_EXCLUDED(mutex_);
  // Skips the remaining background loads.
  void StopWarming() ABSL_LOCKS_EXCLUDED(mutex_);
  // Number of versions that WarmAliases has yet to load or skip.
  int64_t warming() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until warming() is 0, at most until `deadline`.
  enum class Warmth { kWarm, kLate, kStopped };
  Warmth AwaitWarm(std::chrono::steady_clock::time_point deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = LoadKey;

  // The callers that wait for a load.
  struct Waiting {
    std::vector<Callback> callbacks;
    // False while the version is loaded only in the background.
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

  // Answers without access to the disk if possible. Returns nullopt if `key` must be loaded.
  std::optional<absl::StatusOr<VersionHandle>> Resolve(absl::string_view text, LivePart part,
                                                       Key& key) ABSL_LOCKS_EXCLUDED(mutex_);
  void EnqueueLoad(const Key& key, LoadPriority priority, Callback done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds a key to load_line_. If the key `waits` there already, only moves it to the front part if
  // `priority` is kFirst. Returns RESOURCE_EXHAUSTED if load_line_ is full.
  absl::Status Enqueue(const Key& key, LoadPriority priority, bool waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Loads the next key in the line. Runs on the loader thread.
  void RunNextLoad();
  // Returns the next key; empty if another task has already taken it.
  std::optional<Key> TakeNext() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Key> TakeWarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sorts the versions that WarmAliases found. Runs on the loader thread.
  void SortWarmLine() ABSL_LOCKS_EXCLUDED(mutex_);
  // Submits a loader task for the versions in the WarmQueue, unless there already is such a task or
  // no version waits.
  void SubmitWarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Loaded = std::shared_ptr<const LiveVersion>;
  // Loads a key and answers its callers. Runs on the loader thread.
  void RunLoad(const Key& key);
  // Returns the version that `key` means, from memory or from the store. `last` is the result of
  // the previous attempt. Sets `number` when the version is found, even if it cannot be loaded.
  absl::StatusOr<Loaded> LoadVersion(const Key& key, const Attempt& attempt, const Loaded& last,
                                     int64_t& number);
  Attempt BeginAttempt(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the record of the version that `key` means, from the view, or from the store if the
  // view does not know it.
  absl::StatusOr<VersionRecord> LookUp(const Key& key);
  // Returns the record of a version that the view knows, from the cache or from the store.
  absl::StatusOr<VersionRecord> RecordOf(const std::string& mapping, int64_t number)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Loaded> LoadRecord(const VersionRecord& record, LivePart part, Eviction eviction);
  // Returns the memory of evicted versions to the system. Takes some time.
  void ReturnFreedMemory() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status FreeCapacity(const VersionRecord& record, int64_t bytes, Eviction eviction)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes `loaded` live, and moves the callbacks that wait for `key` to `waiters`. Returns false,
  // and does nothing, if the load must be attempted again. There are two reasons for this:
  // - Names have changed since the attempt began, so `key` may mean another version.
  // - A background load failed, and a reader now waits. For a reader, pinned versions may be
  //   unloaded too.
  bool Conclude(const Key& key, const Attempt& attempt, const absl::StatusOr<Loaded>& loaded,
                std::vector<Callback>& waiters) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a version that was known before still exists with the same digest.
  bool HasSame(const MappingNames& now, int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Retire(const std::string& mapping, int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called by the view for each mapping that changed.
  void NamesChanged(const MappingNames& before, const MappingNames& now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void TellAliasChanged(absl::string_view mapping, absl::string_view alias)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records how the call of CatchUp with this number ended.
  void NoteCatchUp(int64_t number, bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void LogFailure(const Key& key, int64_t number, const Attempt& attempt,
                  const absl::Status& error);
  void UpdateMetrics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Store& store_;
  const RegistryMetrics& metrics_;
  const Logger& logger_;
  // While the database is away, names are asked for each second.
  Seldom names_logs_;
  // Whether they could not be read the last time.
  std::atomic<bool> names_fail_{false};
  const VersionLoader version_loader_;
  CatalogView view_;

  Mutex mutex_;
  LiveVersions live_ ABSL_GUARDED_BY(mutex_);
  RememberedRecords records_ ABSL_GUARDED_BY(mutex_);
  // Uses that TakeUses will return.
  std::set<VersionName> uses_ ABSL_GUARDED_BY(mutex_);
  // Number of calls of CatchUp that have begun, and that number at the time when a call last
  // failed.
  int64_t catch_ups_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t behind_since_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of times that a mapping's names changed.
  uint64_t news_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of times that a record was remembered or a version loaded.
  int64_t remembered_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  // The loader has a task for each key, and at most one task for the versions to be warmed.
  LoadQueue load_line_ ABSL_GUARDED_BY(mutex_);
  AliasWarming warming_ ABSL_GUARDED_BY(mutex_);
  CondVar warmed_;
  int64_t counted_evictions_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of evictions whose memory has been returned to the system.
  int64_t returned_evictions_ ABSL_GUARDED_BY(mutex_) = 0;

  // Has one thread, so that at most one artifact is unpacked at a time. Declared last, so that it
  // ends first.
  TaskPool loader_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
