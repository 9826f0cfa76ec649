// Limits what one client host may do on all its connections together, and the number of all
// connections.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_HOST_COUNTS_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_HOST_COUNTS_H_

#include <atomic>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "server/rpc/transport/peer.h"

namespace phimap {

// Faults that a host may make at once, and those that it earns each second.
inline constexpr int kFaultBurst = 4'000;
inline constexpr int kFaultsPerSecond = 400;

// A host is an IPv4 address or the first 64 bits of an IPv6 address (Peer::network), because
// whoever has one IPv6 address has 2^64 of them. Unix sockets and proxies, behind which are many
// clients, count among all connections only. A proxy that begins its connections with a header says
// who its clients are; from then on a connection is counted for its client. Thread-safe.
class HostCounts {
 public:
  enum class Taken { kYes, kTooMany, kTooManyOfHost };

  // `proxies` and `header_proxies`: addresses in the form of CanonicalIpAddress, or "unix" for all
  // Unix sockets. Each connection from one of `header_proxies` begins with a header of the PROXY
  // protocol.
  HostCounts(int max_connections, int max_connections_per_host,
             const std::vector<std::string>& proxies,
             const std::vector<std::string>& header_proxies = {})
      : max_connections_(max_connections),
        max_connections_per_host_(max_connections_per_host),
        proxies_(proxies.begin(), proxies.end()),
        header_proxies_(header_proxies.begin(), header_proxies.end()) {}

  // Counts a connection, unless there are too many already.
  Taken Take(const Peer& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(const Peer& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a connection that was taken by a proxy (Peer::proxy) for its client from now on. Returns
  // false if the client's host has too many; it then still counts for the proxy.
  bool PassTo(const Peer& client) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether at least seven eighths of all connections are taken.
  bool Scarce() ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a fault of a client, such as a refused call. Returns false if its host has made too
  // many.
  bool CountFault(const Peer& peer, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether `peer` is exempt from limits of its host.
  bool IsExempt(const Peer& peer) const {
    return peer.proxy || peer.unix_socket || proxies_.contains(peer.host);
  }
  // Whether connections from `peer` begin with a header of the PROXY protocol.
  bool BeginsWithHeader(const Peer& peer) const { return header_proxies_.contains(peer.host); }

  // Open connections stay, even if there are more than new limits allow.
  void SetLimits(int max_connections, int max_connections_per_host) {
    max_connections_.store(max_connections);
    max_connections_per_host_.store(max_connections_per_host);
  }
  int max_connections() const { return max_connections_.load(); }
  int max_connections_per_host() const { return max_connections_per_host_.load(); }

 private:
  struct Host {
    int connections = 0;
    double faults_left = kFaultBurst;
    absl::Time last_fault = absl::InfinitePast();
  };
  bool TakeOfHost(const Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets hosts without connections that have earned all their faults again, now and then.
  void Prune(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<int> max_connections_;
  std::atomic<int> max_connections_per_host_;
  const absl::flat_hash_set<std::string> proxies_;
  const absl::flat_hash_set<std::string> header_proxies_;
  Mutex mutex_;
  int connections_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Host> hosts_ ABSL_GUARDED_BY(mutex_);
  absl::Time pruned_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_HOST_COUNTS_H_
