// Keeps a registry's names up to date with other servers' changes, from its own thread.
#ifndef PHIMAP_SERVER_REGISTRY_CATALOG_FOLLOWER_H_
#define PHIMAP_SERVER_REGISTRY_CATALOG_FOLLOWER_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "prometheus/counter.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"

namespace phimap {

// Guarantees: while the catalog answers, the registry knows each change soon after its commit, at
// the latest after kPollPeriod plus the time of one answer. This holds even if notifications get
// lost or a connection hangs. While the database does not answer, names keep their meaning. The
// follower then asks again after 50 ms, and doubles the delay each time, up to a second.
class CatalogFollower {
 public:
  static constexpr absl::Duration kPollPeriod = absl::Milliseconds(250);

  // Calls `after_each` on its thread after each attempt to catch up, with whether it succeeded.
  // `registry` and `errors` must outlive the follower.
  CatalogFollower(
      VersionRegistry& registry, std::unique_ptr<ChangeFeed> feed, prometheus::Counter* errors,
      std::function<void(bool caught_up)> after_each = [](bool) {});
  // Waits for the query in progress.
  ~CatalogFollower();
  CatalogFollower(const CatalogFollower&) = delete;
  CatalogFollower& operator=(const CatalogFollower&) = delete;

  // Time since the registry's knowledge was last complete.
  absl::Duration Age() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the database did not answer when it was last asked.
  bool failing() const { return failing_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  // Waits for `pause`. Returns false if the follower is being destroyed.
  bool Pause(absl::Duration pause) ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopping() ABSL_LOCKS_EXCLUDED(mutex_);

  VersionRegistry& registry_;
  const std::unique_ptr<ChangeFeed> feed_;
  prometheus::Counter* const errors_;
  const std::function<void(bool caught_up)> after_each_;
  // At first, whether the registry could not be told the names when the server started.
  std::atomic<bool> failing_;

  mutable Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point current_at_ ABSL_GUARDED_BY(mutex_) = Clock::now();

  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_CATALOG_FOLLOWER_H_
