#include "server/rpc/transport/listener.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/thread/steady_time.h"
#include "server/rpc/transport/peer.h"

namespace phimap {
namespace {

// Descriptors reserved for the store, builds, the metrics endpoint (32 connections) and reading
// tokens and TLS certificates.
constexpr rlim_t kReserve = 64;
constexpr absl::Duration kPause = absl::Milliseconds(100);
// Maximum connections accepted per call of OnReady, so that a flood does not delay other work.
constexpr int kMaxInARow = 64;

// Returns the user of the process at the other end of a Unix-domain socket.
std::optional<uint32_t> UserOf(int connection) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return std::nullopt;
  }
  return credentials.uid;
}

Peer PeerOf(int connection, const sockaddr_storage& name) {
  if (name.ss_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(name);
    return PeerAt(ip.sin_addr, ntohs(ip.sin_port));
  }
  if (name.ss_family == AF_INET6) {
    const auto& ip = reinterpret_cast<const sockaddr_in6&>(name);
    return PeerAt(ip.sin6_addr, ntohs(ip.sin6_port));
  }
  Peer peer = UnixPeer();
  peer.user = UserOf(connection);
  if (peer.user.has_value()) absl::StrAppend(&peer.address, "uid=", *peer.user);
  return peer;
}

}  // namespace

int MaxConnectionDescriptor() {
  rlimit limit{};
  PHIMAP_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlim_t files = std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int>::max());
  return static_cast<int>(files - std::min(kReserve, files / 2));
}

Listener::Listener(EventLoop& loop, ListeningSocket socket, TlsContext* tls, bool http1,
                   const Options& options, Take take)
    : loop_(loop),
      socket_(std::move(socket)),
      tls_(tls),
      http1_(http1),
      options_(options),
      take_(std::move(take)),
      retry_(*this) {
  Listen();
}

Listener::~Listener() { loop_.Remove(socket_.fd(), *this); }

void Listener::Listen() {
  if (!loop_.Add(socket_.fd(), EPOLLIN, *this)) {
    loop_.timers().Set(retry_, SteadyNow() + kPause);
  }
}

void Listener::Pause() {
  loop_.Remove(socket_.fd(), *this);
  loop_.timers().Set(retry_, SteadyNow() + kPause);
}

void Listener::OnReady(uint32_t) {
  for (int i = 0; i < kMaxInARow; ++i) {
    sockaddr_storage name{};
    socklen_t size = sizeof(name);
    const int connection = accept4(socket_.fd(), reinterpret_cast<sockaddr*>(&name), &size,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
      Accepted(connection, name);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      // EMFILE, ENFILE, ENOMEM and network errors are temporary.
      Warn("cannot_accept", std::strerror(errno));
      return Pause();
    }
  }
}

void Listener::Accepted(int connection, const sockaddr_storage& name) {
  Peer peer;
  try {
    peer = PeerOf(connection, name);
    peer.proxy = options_.hosts.BeginsWithHeader(peer);
    if (!Admits(connection, peer)) {
      close(connection);
      return;
    }
  } catch (const std::bad_alloc&) {
    close(connection);
    throw;
  }
  options_.metrics.accepted->Increment();
  std::unique_ptr<Channel> channel = ChannelOf(connection);
  if (channel == nullptr) {
    close(connection);
    options_.hosts.Return(peer);
    return;
  }
  try {
    take_(std::move(channel), peer);
  } catch (const std::bad_alloc&) {  // on the way to the loop that would have taken it
    options_.hosts.Return(peer);
    throw;
  }
}

bool Listener::Admits(int connection, const Peer& peer) {
  if (connection >= options_.max_descriptor) {
    options_.metrics.refused->Increment();
    Warn("connections_refused", "too many connections are open");
    return false;
  }
  if (options_.hosts.Scarce()) options_.make_room();
  // Checked before anything is allocated for the connection, so that a flood costs little.
  switch (options_.hosts.Take(peer)) {
    case HostCounts::Taken::kYes:
      return true;
    case HostCounts::Taken::kTooManyOfHost:
      options_.metrics.refused_by_address->Increment();
      if (warns_of_address_.Now()) LogTooManyOfHost(options_.logger, options_.hosts, peer);
      return false;
    case HostCounts::Taken::kTooMany:
      break;
  }
  options_.metrics.refused->Increment();
  Warn("connections_refused", "--max_connections connections are open");
  return false;
}

std::unique_ptr<Channel> Listener::ChannelOf(int connection) const {
  try {
    return tls_ == nullptr ? PlainChannel(connection)
                           : TlsChannel(connection, tls_->NewSession(http1_));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Listener::Warn(const char* event, const char* reason) {
  if (!warns_.Now()) return;
  options_.logger.Log(
      LogLevel::kWarning, event,
      {{"reason", reason},
       {"descriptors_for_connections", options_.max_descriptor},
       {"max_connections", options_.hosts.max_connections()},
       {"help",
        "raise --max_connections, if there is memory for more, or the limit of open "
        "files (RLIMIT_NOFILE, LimitNOFILE=)"}});
}

void LogTooManyOfHost(const Logger& logger, const HostCounts& hosts, const Peer& peer) {
  logger.Log(LogLevel::kWarning, "connections_refused_by_address",
             {{"address", peer.network},
              {"limit", hosts.max_connections_per_host()},
              {"help",
               "if this address is a proxy of many clients, give it in --proxy_protocol, or in "
               "--proxy if it cannot send the PROXY protocol; otherwise raise "
               "--max_connections_per_host"}});
}

}  // namespace phimap
