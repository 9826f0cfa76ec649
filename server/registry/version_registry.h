// The registry of live versions: from a reference to a version that is ready to serve.
//
// Guarantees: a version in memory is found at once, on the calling thread and without touching the
// disk (about a microsecond). Any other is loaded on the loader thread, once for all who ask
// meanwhile, and their callbacks run there. A version that cannot be loaded is an error for those
// who asked (DATA_LOSS if it is damaged) and changes nothing for the others. Memory of live
// versions stays under the limit. No answer contradicts a change that was made known by CatchUp
// before the question: a name that moved means its new version, a version that is gone is not
// found, whatever was being loaded meanwhile. Thread-safety: all methods may be called from any
// thread.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
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
  };
  using Callback = std::function<void(absl::StatusOr<VersionHandle>)>;

  // `store`, `metrics` and `logger` outlive the registry.
  VersionRegistry(Options options, Store& store, const RegistryMetrics& metrics,
                  const Logger& logger);
  // Runs what was asked for, then returns.
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

  // Asks the store what has become of names: call it after each change, and before the first
  // question. Who holds a version that is gone goes on. Blocking. Errors: those of the store,
  // which are logged; then names mean what they meant, until the next call, or until somebody asks
  // for a name that is not known.
  absl::Status CatchUp();

 private:
  // A reference with its own text.
  struct Key {
    std::string mapping;
    // 0: not by number.
    int64_t number = 0;
    std::string alias;

    Reference reference() const;
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.mapping, a.number, a.alias) < std::tie(b.mapping, b.number, b.alias);
    }
    friend bool operator==(const Key& a, const Key& b) {
      return std::tie(a.mapping, a.number, a.alias) == std::tie(b.mapping, b.number, b.alias);
    }
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
  Key TakeNext() ABSL_LOCKS_EXCLUDED(mutex_);
  using Loaded = std::shared_ptr<const LiveVersion>;
  // On the loader thread.
  void RunLoad(const Key& key);
  // What `key` means, live or else read; `last` is what was read for it before.
  // `number` becomes that of the version, when it is found, also if it cannot be loaded.
  absl::StatusOr<Loaded> LoadKey(const Key& key, const Loaded& last, int64_t& number);
  // The record of what `key` means, as the view knows, or the store if the view does not.
  absl::StatusOr<VersionRecord> LookUp(const Key& key);
  absl::StatusOr<Loaded> LoadRecord(const VersionRecord& record);
  absl::StatusOr<Loaded> Load(const VersionRecord& record);
  // The way to the service that computes the plan's kernel; null if none does.
  absl::StatusOr<std::shared_ptr<KernelQueue>> KernelOf(const Plan& plan, bool want_diagonal) const;
  absl::Status MakeRoom(const VersionRecord& record, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes `loaded` live, and takes those who wait for `key`. False, and nothing is done, if names
  // changed since `news`: `key` may mean something else now.
  bool Conclude(const Key& key, uint64_t news, const absl::StatusOr<Loaded>& loaded,
                std::vector<Callback>& waiters) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the view tells.
  void NamesChanged(const MappingNames& before, const MappingNames& now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void TellAliasChanged(absl::string_view mapping, absl::string_view alias)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void LogFailure(const Key& key, int64_t number, const absl::Status& error);
  uint64_t News() ABSL_LOCKS_EXCLUDED(mutex_);
  void UpdateMetrics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Store& store_;
  const RegistryMetrics& metrics_;
  const Logger& logger_;
  CatalogView view_;

  Mutex mutex_;
  LiveVersions live_ ABSL_GUARDED_BY(mutex_);
  // Counts mappings whose names changed.
  uint64_t news_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, std::vector<Callback>> waiting_ ABSL_GUARDED_BY(mutex_);
  // Keys that wait for the loader, which has a task for each.
  std::deque<Key> first_ ABSL_GUARDED_BY(mutex_);
  std::deque<Key> last_ ABSL_GUARDED_BY(mutex_);
  int64_t counted_evictions_ ABSL_GUARDED_BY(mutex_) = 0;

  // One thread: at most one artifact is being unpacked, whatever clients ask for. Last, so that it
  // ends first.
  TaskPool loader_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
