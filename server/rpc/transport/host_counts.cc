#include "server/rpc/transport/host_counts.h"

#include <algorithm>

namespace phimap {
namespace {

// Time after which a host without connections has earned all its faults again.
constexpr absl::Duration kForgiven = absl::Seconds(kFaultBurst / kFaultsPerSecond);

}  // namespace

HostCounts::Taken HostCounts::Take(const Peer& peer) {
  MutexLock lock(&mutex_);
  if (connections_ >= max_connections_) return Taken::kTooMany;
  if (!TakeOfHost(peer)) return Taken::kTooManyOfHost;
  ++connections_;
  return Taken::kYes;
}

bool HostCounts::PassTo(const Peer& client) {
  MutexLock lock(&mutex_);
  return TakeOfHost(client);
}

bool HostCounts::TakeOfHost(const Peer& peer) {
  if (IsExempt(peer)) return true;
  Host& host = hosts_[peer.network];
  if (host.connections >= max_connections_per_host_) return false;
  ++host.connections;
  return true;
}

void HostCounts::Return(const Peer& peer) {
  MutexLock lock(&mutex_);
  --connections_;
  if (IsExempt(peer)) return;
  const auto found = hosts_.find(peer.network);
  Host& host = found->second;
  if (--host.connections == 0 && host.last_fault == absl::InfinitePast()) hosts_.erase(found);
}

bool HostCounts::Scarce() {
  MutexLock lock(&mutex_);
  const int limit = max_connections();
  return connections_ >= limit - limit / 8;
}

bool HostCounts::CountFault(const Peer& peer, absl::Time now) {
  if (IsExempt(peer)) return true;
  MutexLock lock(&mutex_);
  Prune(now);
  Host& host = hosts_[peer.network];
  const double seconds =
      absl::ToDoubleSeconds(std::clamp(now - host.last_fault, absl::ZeroDuration(), kForgiven));
  host.last_fault = now;
  host.faults_left = std::min<double>(host.faults_left + seconds * kFaultsPerSecond, kFaultBurst);
  // A host that goes on has to pause before it may make a fault again, but no longer than a second.
  host.faults_left = std::max<double>(host.faults_left - 1, -kFaultsPerSecond);
  return host.faults_left >= 0;
}

void HostCounts::Prune(absl::Time now) {
  if (now - pruned_ < kForgiven) return;
  pruned_ = now;
  std::erase_if(hosts_, [now](const auto& entry) {
    return entry.second.connections == 0 && now - entry.second.last_fault >= kForgiven;
  });
}

}  // namespace phimap
