// Loads the versions that aliases point to, between the start of a server and its readiness.
#ifndef PHIMAP_SERVER_WARM_START_H_
#define PHIMAP_SERVER_WARM_START_H_

#include <chrono>
#include <functional>
#include <thread>

#include "server/observe/log.h"
#include "server/registry/version_registry.h"

namespace phimap {

// Guarantees: calls `ready` at most once, on its own thread, when `registry` has loaded or skipped
// the versions that aliases point to, or after `at_most`. Does not call `ready` after the
// destructor has begun. Thread-safe.
class WarmStart {
 public:
  // REQUIRES: registry.WarmAliases() was called. `registry` and `logger` must outlive this object.
  WarmStart(VersionRegistry& registry, std::chrono::seconds at_most, const Logger& logger,
            std::function<void()> ready);
  // Stops the wait and the loading in the background.
  ~WarmStart();
  WarmStart(const WarmStart&) = delete;
  WarmStart& operator=(const WarmStart&) = delete;

 private:
  void Run(std::chrono::steady_clock::time_point started, std::chrono::seconds at_most);

  VersionRegistry& registry_;
  const Logger& logger_;
  const std::function<void()> ready_;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_WARM_START_H_
