// The services that every gRPC server has: health (proto/grpc/health/v1/health.proto) and
// reflection (proto/grpc/reflection).
#ifndef PHIMAP_SERVER_RPC_STANDARD_SERVICES_H_
#define PHIMAP_SERVER_RPC_STANDARD_SERVICES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "grpc/health/v1/health.pb.h"
#include "server/rpc/dispatcher.h"

namespace phimap {

// Records whether the server and each of its services accept calls, and notifies watchers of
// changes.
//
// Thread-safety: all methods may be called from any thread.
class HealthStatus {
 public:
  using Serving = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Is notified of changes, on the thread that makes them.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // Called when the status may have changed. Must return at once, and must not call the
    // HealthStatus.
    virtual void OnHealthChange() = 0;
  };

  // Tracks each of `services`, and "" for the server as a whole. At first, none of them is serving.
  explicit HealthStatus(const std::vector<std::string>& services);
  // REQUIRES: there are no watchers.
  ~HealthStatus();
  HealthStatus(const HealthStatus&) = delete;
  HealthStatus& operator=(const HealthStatus&) = delete;

  // Sets the status of all services.
  void SetServing(bool serving) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the status of one service. REQUIRES: the service is known.
  void SetServing(absl::string_view service, bool serving) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns SERVICE_UNKNOWN for any other service.
  Serving Of(absl::string_view service) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends present and future watches, because the server is shutting down.
  void EndWatches() ABSL_LOCKS_EXCLUDED(mutex_);
  bool watches_ended() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Notifies `watcher` of every change until Unwatch. No notification runs or starts after Unwatch
  // returns.
  void Watch(Watcher& watcher) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unwatch(Watcher& watcher) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void TellAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, bool, std::less<>> serving_ ABSL_GUARDED_BY(mutex_);
  bool watches_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
};

// Adds the service, which any caller may use at any time. `status` must outlive all calls.
void AddHealthService(HealthStatus& status, Dispatcher& dispatcher);

// Adds server reflection, v1 and v1alpha. They describe themselves and the services that
// `dispatcher` has so far, so this must be called after all other services were added.
void AddReflectionService(Dispatcher& dispatcher);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_STANDARD_SERVICES_H_
