#include "server/health/health_status.h"

#include "core/status/check.h"

namespace phimap {

HealthStatus::HealthStatus(const std::vector<std::string>& services) {
  serving_.emplace("", false);
  for (const std::string& service : services) serving_.emplace(service, false);
}

HealthStatus::~HealthStatus() { PHIMAP_CHECK(watchers_.empty()); }

void HealthStatus::SetServing(bool serving) {
  MutexLock lock(&mutex_);
  for (auto& [name, now] : serving_) now = serving;
  TellAll();
}

void HealthStatus::SetServing(absl::string_view service, bool serving) {
  MutexLock lock(&mutex_);
  const auto found = serving_.find(service);
  PHIMAP_CHECK(found != serving_.end());
  found->second = serving;
  TellAll();
}

HealthStatus::Serving HealthStatus::Of(absl::string_view service) const {
  using Response = grpc::health::v1::HealthCheckResponse;
  MutexLock lock(&mutex_);
  const auto found = serving_.find(service);
  if (found == serving_.end()) return Response::SERVICE_UNKNOWN;
  return found->second ? Response::SERVING : Response::NOT_SERVING;
}

void HealthStatus::EndWatches() {
  MutexLock lock(&mutex_);
  watches_ended_ = true;
  TellAll();
}

bool HealthStatus::watches_ended() const {
  MutexLock lock(&mutex_);
  return watches_ended_;
}

void HealthStatus::Watch(Watcher& watcher) {
  MutexLock lock(&mutex_);
  watchers_.insert(&watcher);
}

void HealthStatus::Unwatch(Watcher& watcher) {
  MutexLock lock(&mutex_);
  watchers_.erase(&watcher);
}

// Runs under the lock, so that no watcher is called after its Unwatch has returned.
void HealthStatus::TellAll() {
  for (Watcher* const watcher : watchers_) watcher->OnHealthChange();
}

}  // namespace phimap
