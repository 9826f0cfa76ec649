// Counts and limits the open connections of each client address.
#ifndef PHIMAP_SERVER_TRANSPORT_HOST_COUNTS_H_
#define PHIMAP_SERVER_TRANSPORT_HOST_COUNTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "server/sync/mutex.h"
#include "server/transport/peer.h"

namespace phimap {

// Thread-safe.
class HostCounts {
 public:
  // `proxies`: addresses in the form of CanonicalIpAddress.
  HostCounts(int max_connections, const std::vector<std::string>& proxies)
      : max_connections_(max_connections), proxies_(proxies.begin(), proxies.end()) {}

  // Counts a connection. Returns false, without counting it, if its address already has the maximum
  // number of connections.
  bool Take(const Peer& peer) {
    if (IsExempt(peer)) return true;
    MutexLock lock(&mutex_);
    int& count = counts_[peer.host];
    if (count >= max_connections_) return false;
    ++count;
    return true;
  }
  int max_connections() const { return max_connections_; }
  void Return(const Peer& peer) {
    if (IsExempt(peer)) return;
    MutexLock lock(&mutex_);
    const auto found = counts_.find(peer.host);
    if (--found->second == 0) counts_.erase(found);
  }
  // Whether `peer` is exempt from limits, because many clients may be behind it.
  bool IsExempt(const Peer& peer) const { return peer.unix_socket || proxies_.contains(peer.host); }

 private:
  const int max_connections_;
  const absl::flat_hash_set<std::string> proxies_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_HOST_COUNTS_H_
