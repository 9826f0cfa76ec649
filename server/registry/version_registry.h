// The registry of live versions: from a reference to a version that is ready to serve.
//
// Guarantees: a version in memory is found at once, on the calling thread and without touching the
// disk (about a microsecond). Any other is loaded on the loader thread, once for all who ask
// meanwhile, and their callbacks run there. A version that cannot be loaded is an error for those
// who asked (DATA_LOSS if it is damaged) and changes nothing for the others. Memory of live
// versions stays under the limit. Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/registry/live_versions.h"
#include "server/registry/reference.h"
#include "server/registry/version_handle.h"
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
  void Acquire(absl::string_view reference, Callback done);

  // The version if it is in memory; empty otherwise. Never waits.
  VersionHandle FindLive(absl::string_view mapping, int64_t number);

  // Tells the registry that `record` is visible: from now on the bare name means it, unless a newer
  // one is known.
  void Published(const VersionRecord& record);

 private:
  // Number 0 stands for the newest version of a name whose newest is not known yet.
  using Key = std::pair<std::string, int64_t>;

  // What can be said without the disk; nullopt: load `key`.
  std::optional<absl::StatusOr<VersionHandle>> Resolve(absl::string_view text, Key& key)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EnqueueLoad(const Key& key, Callback done) ABSL_LOCKS_EXCLUDED(mutex_);
  // On the loader thread.
  void RunLoad(const Key& key);
  absl::StatusOr<VersionHandle> LoadKey(const Key& key);
  absl::StatusOr<std::shared_ptr<const LiveVersion>> Load(const VersionRecord& record);
  absl::Status MakeRoom(const VersionRecord& record, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void LearnNewest(absl::string_view mapping, int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateMetrics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Store& store_;
  const RegistryMetrics& metrics_;
  const Logger& logger_;

  Mutex mutex_;
  LiveVersions live_ ABSL_GUARDED_BY(mutex_);
  // Newest version of each name that was asked for or published. This process is the store's only
  // publisher.
  absl::flat_hash_map<std::string, int64_t> newest_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, std::vector<Callback>> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t counted_evictions_ ABSL_GUARDED_BY(mutex_) = 0;

  // One thread: at most one artifact is being unpacked, whatever clients ask for. Last, so that it
  // ends first.
  TaskPool loader_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_REGISTRY_H_
