// When a server becomes ready: once it knows names and accepts calls, and the versions that aliases
// point to are in memory, or took too long.
#ifndef PHIMAP_SERVER_READINESS_H_
#define PHIMAP_SERVER_READINESS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/observe/log.h"
#include "server/registry/version_registry.h"
#include "server/sync/mutex.h"
#include "server/warm_start.h"

namespace phimap {

// Thread-safe.
class Readiness {
 public:
  // Calls `ready` at most once, on any thread, and not after Stop. `registry` and `logger` must
  // outlive this object.
  Readiness(VersionRegistry& registry, std::chrono::seconds warm_time, const Logger& logger,
            std::function<void()> ready)
      : registry_(registry), warm_time_(warm_time), logger_(logger), ready_(std::move(ready)) {}

  // The registry knows names: from the store, or from an earlier run. May be called again.
  void NamesAreKnown() ABSL_LOCKS_EXCLUDED(mutex_);
  void CallsAreAccepted() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops the loading of versions in the background.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // What the server waits for, for people; "not serving" if for nothing more.
  std::string WaitsFor() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Begins to load versions if there is nothing else to wait for.
  void MayBegin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  VersionRegistry& registry_;
  const std::chrono::seconds warm_time_;
  const Logger& logger_;
  const std::function<void()> ready_;
  Mutex mutex_;
  bool names_known_ ABSL_GUARDED_BY(mutex_) = false;
  bool accepts_calls_ ABSL_GUARDED_BY(mutex_) = false;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<WarmStart> warm_start_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_READINESS_H_
