// The registry of live versions: from a reference to a version that is ready to serve.
//
// Guarantees: a version in memory is found at once, on the calling thread and without touching the
// disk (about a microsecond). Any other is loaded on the loader thread, once for all who ask
// meanwhile, and their callbacks run there. A version that cannot be loaded is an error for those
// who asked (DATA_LOSS if it is damaged) and changes nothing for the others. Memory of live
// versions stays under the limit. No answer contradicts a change that was made known by CatchUp
// before the question: a name that moved means its new version, a version that is gone is not
// found, whatever was being loaded meanwhile. Versions that aliases name are evicted after all
// others, and WarmAliases keeps them loaded as far as they fit. Thread-safety: all methods may be
// called from any thread.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_

#include <chrono>
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
#include "server/kernel_client/kernel_services.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/registry/catalog_view.h"
#include "server/registry/live_versions.h"
#include "server/registry/reference.h"
#include "server/registry/version_handle.h"
#include "server/registry/warm_line.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

// Where a version that must be loaded stands in the line: behind all others, as for readers, or
// before them, as for administration.
enum class LoadTurn { kLast, kFirst };

class VersionRegistry {
 public:
  struct Options {
    int64_t max_live_bytes = int64_t{4} << 30;
    // Different versions that may wait to be loaded.
    int max_queued_loads = 256;
    // Requests that may wait for one version.
    int max_waiters = 4096;
    // Where versions find the services that compute their kernels; outlives the registry. Null:
    // none are listed.
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
  // Runs what was asked for, then returns; what nobody asked for is not loaded any more.
  ~VersionRegistry();
  VersionRegistry(const VersionRegistry&) = delete;
  VersionRegistry& operator=(const VersionRegistry&) = delete;

  // Calls `done` exactly once: on this thread if the answer is at hand, otherwise later on the
  // loader thread. Errors: INVALID_ARGUMENT (not a reference), NOT_FOUND, DATA_LOSS,
  // RESOURCE_EXHAUSTED (too many wait; the version does not fit), and those of the store.
  void Acquire(absl::string_view reference, Callback done) {
    Acquire(reference, LoadTurn::kLast, std::move(done));
  }
  // The same with a place in the line: administration waits for one load of a reader at most, and
  // is not refused because many wait.
  void Acquire(absl::string_view reference, LoadTurn turn, Callback done);

  // The version if it is in memory; empty otherwise. Never waits.
  VersionHandle FindLive(absl::string_view mapping, int64_t number);
  // The same of the version that `reference` means, as far as that is known.
  VersionHandle FindLive(const Reference& reference);

  // All versions in memory, by name and number. They count as no more used than before.
  std::vector<VersionHandle> AllLive();

  // Whoever uses a version without counting requests of it (VersionTally) says so.
  void NoteUse(const VersionHandle& version) ABSL_LOCKS_EXCLUDED(mutex_);
  // The versions of NoteUse, and those that were loaded because somebody asked for them, since the
  // last call of this.
  std::set<VersionName> TakeUses() ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks the store what has become of names: call it after each change, and before the first
  // question. Who holds a version that is gone goes on. Blocking. Errors: those of the store,
  // which are logged; then names mean what they meant, until the next call, or until somebody asks
  // for a name that is not known.
  absl::Status CatchUp() {
    return CatchUp([this](const Revision& since) { return store_.ChangesSince(since); });
  }
  // The same of another way to the same catalog, with time limits of its own.
  absl::Status CatchUp(CatalogView::Source source);

  // What names mean is known up to here.
  Revision revision() const { return view_.revision(); }
  // The same, if CatchUp has not failed since it last succeeded: what was changed before that
  // failure may not be in it.
  std::optional<Revision> revision_with_own_changes() ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on loads the versions that aliases name, in the background and behind all readers:
  // those of now, beginning with the alias that was moved last, and later the new version of an
  // alias as soon as CatchUp tells. One that does not fit beside the others that aliases name, or
  // that cannot be loaded, is passed over: it is loaded when somebody asks for it. REQUIRES: has
  // caught up once.
  void WarmAliases() ABSL_LOCKS_EXCLUDED(mutex_);
  // Passes over what is not loaded by now, and loads nothing in the background any more.
  void StopWarming() ABSL_LOCKS_EXCLUDED(mutex_);
  // Versions that are still to be loaded in the background, or passed over.
  int64_t warming() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when there are none, at the latest at `deadline`.
  enum class Warmth { kWarm, kLate, kStopped };
  Warmth AwaitWarm(std::chrono::steady_clock::time_point deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A reference with its own text.
  struct Key {
    std::string mapping;
    // 0: not by number.
    int64_t number = 0;
    std::string alias;
    std::string digest = {};

    Reference reference() const;
    friend auto operator<=>(const Key& a, const Key& b) = default;
  };

  // Who waits for a load.
  struct Waiting {
    std::vector<Callback> callbacks;
    // False while it is loaded in the background alone.
    bool for_readers = false;
  };
  // What is known when a load begins.
  struct Attempt {
    uint64_t news = 0;
    bool for_readers = false;
    // Nobody wants what is loaded in the background and no alias names any more.
    bool wanted = true;

    Eviction eviction() const { return for_readers ? Eviction::kPinnedLast : Eviction::kUnpinned; }
  };

  // What can be said without the disk; nullopt: load `key`.
  std::optional<absl::StatusOr<VersionHandle>> Resolve(absl::string_view text, Key& key)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EnqueueLoad(const Key& key, LoadTurn turn, Callback done) ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts a key into the line, or moves it to the front of it. RESOURCE_EXHAUSTED if it is full.
  absl::Status LineUp(const Key& key, LoadTurn turn, bool waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On the loader thread: the next of the line.
  void RunNextLoad();
  // Empty if somebody else took it already.
  std::optional<Key> TakeNext() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Key> TakeWarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On the loader thread: puts what WarmAliases found into its order.
  void SortWarmLine() ABSL_LOCKS_EXCLUDED(mutex_);
  // The loader has one task for the line of warm versions, while there are any.
  void SubmitWarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WarmMoved(const MappingNames& before, const MappingNames& now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t CountWarming() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Loaded = std::shared_ptr<const LiveVersion>;
  // On the loader thread.
  void RunLoad(const Key& key);
  // What `key` means, live or else read; `last` is what was read for it before.
  // `number` becomes that of the version, when it is found, also if it cannot be loaded.
  absl::StatusOr<Loaded> LoadKey(const Key& key, const Attempt& attempt, const Loaded& last,
                                 int64_t& number);
  Attempt BeginAttempt(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);
  // The record of what `key` means, as the view knows, or the store if the view does not.
  absl::StatusOr<VersionRecord> LookUp(const Key& key);
  // That of a version that the view knows, remembered or read.
  absl::StatusOr<VersionRecord> RecordOf(const std::string& mapping, int64_t number)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Loaded> LoadRecord(const VersionRecord& record, Eviction eviction);
  absl::StatusOr<Loaded> Load(const VersionRecord& record);
  // On the loader thread, before a load: gives back to the system what was evicted since the last.
  void ReturnFreedMemory() ABSL_LOCKS_EXCLUDED(mutex_);
  // The way to the service that computes the plan's kernel; null if none does.
  absl::StatusOr<std::shared_ptr<KernelQueue>> KernelOf(const Plan& plan, bool want_diagonal) const;
  absl::Status MakeRoom(const VersionRecord& record, int64_t bytes, Eviction eviction)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes `loaded` live, and takes those who wait for `key`. False, and nothing is done, if names
  // changed since the attempt began, so that `key` may mean something else now, or if it failed and
  // a reader came, for whom more can be tried.
  bool Conclude(const Key& key, const Attempt& attempt, const absl::StatusOr<Loaded>& loaded,
                std::vector<Callback>& waiters) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a version that was known is there still, and the same.
  bool HasSame(const MappingNames& now, int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Retire(const std::string& mapping, int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the view tells.
  void NamesChanged(const MappingNames& before, const MappingNames& now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void TellAliasChanged(absl::string_view mapping, absl::string_view alias)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // That the CatchUp of this number ended so.
  void NoteCatchUp(int64_t number, bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void LogFailure(const Key& key, int64_t number, const Attempt& attempt,
                  const absl::Status& error);
  void UpdateMetrics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Store& store_;
  const RegistryMetrics& metrics_;
  const Logger& logger_;
  CatalogView view_;

  Mutex mutex_;
  LiveVersions live_ ABSL_GUARDED_BY(mutex_);
  // Records of versions that were looked up and exist: they do not change, and a database that is
  // away need not be asked for them. By name and number; some are forgotten when they are many.
  std::map<std::pair<std::string, int64_t>, VersionRecord> records_ ABSL_GUARDED_BY(mutex_);
  // For TakeUses.
  std::set<VersionName> uses_ ABSL_GUARDED_BY(mutex_);
  // Calls of CatchUp that began, and how many had when one last failed.
  int64_t catch_ups_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t behind_since_ ABSL_GUARDED_BY(mutex_) = 0;
  // Counts mappings whose names changed.
  uint64_t news_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  // Keys that wait for the loader, which has a task for each.
  std::deque<Key> first_ ABSL_GUARDED_BY(mutex_);
  std::deque<Key> last_ ABSL_GUARDED_BY(mutex_);
  enum class Warming { kNotYet, kOn, kStopped };
  Warming warming_ ABSL_GUARDED_BY(mutex_) = Warming::kNotYet;
  // For which the loader has at most one task.
  WarmLine warm_line_ ABSL_GUARDED_BY(mutex_);
  bool warm_submitted_ ABSL_GUARDED_BY(mutex_) = false;
  // The one that the loader took out of it.
  std::optional<Key> warm_load_ ABSL_GUARDED_BY(mutex_);
  CondVar warmed_;
  int64_t counted_evictions_ ABSL_GUARDED_BY(mutex_) = 0;
  // Those whose memory was given back.
  int64_t returned_evictions_ ABSL_GUARDED_BY(mutex_) = 0;

  // One thread: at most one artifact is being unpacked, whatever clients ask for. Last, so that it
  // ends first.
  TaskPool loader_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
