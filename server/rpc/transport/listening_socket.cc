#include "server/rpc/transport/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

namespace {

constexpr uint32_t kMaxPort = 65535;

// "[::1]:80" → "::1", "host:80" → "host".
std::string HostOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  absl::string_view host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return std::string(host);
}

}  // namespace

bool IsLoopbackAddress(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  if (address.rfind(':') == absl::string_view::npos) return false;
  const std::string host = HostOf(address);
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckAddress(absl::string_view flag, absl::string_view address) {
  if (absl::StartsWith(address, "unix:") && address.size() > 5) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  const bool has_port = colon != absl::string_view::npos && colon > 0;
  const absl::string_view port = has_port ? address.substr(colon + 1) : "";
  uint32_t number = 0;
  // Digits only: SimpleAtoi would also accept spaces and signs.
  const bool digits = !port.empty() && std::all_of(port.begin(), port.end(), absl::ascii_isdigit);
  if (digits && absl::SimpleAtoi(port, &number) && number <= kMaxPort) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kAddressInvalid, flag,
                   absl::StrCat("expected HOST:PORT with a port in 0..", kMaxPort,
                                " (0: any free port) or unix:PATH, got \"", address, "\""),
                   {{"address", std::string(address)}});
}

absl::Status CheckReachable(absl::string_view flag, absl::string_view address, bool allowed) {
  if (allowed || IsLoopbackAddress(address)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kAddressNotLoopback, flag,
      absl::StrCat("\"", address,
                   "\" can be reached from other machines, but its connections are not both "
                   "encrypted and authenticated; listen on 127.0.0.1 instead, or (for the API) set "
                   "--tls_certificate and --tls_key together with --token_file or "
                   "--tls_client_ca, or set --insecure on a private network"),
      {{"address", std::string(address)}});
}

std::string WithPort(absl::string_view address, int port) {
  if (absl::StartsWith(address, "unix:")) return std::string(address);
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

namespace {

absl::Status CannotListen(const std::string& path, absl::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kAddressNotAvailable,
                   "unix_listen", absl::StrCat("cannot listen on ", path, ": ", why),
                   {{"address", path}});
}

// Returns false only if certainly no server listens on the socket at `path`.
bool MayBeServed(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int result = connect(probe, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  const bool refused = result != 0 && errno == ECONNREFUSED;
  close(probe);
  return !refused;
}

}  // namespace

absl::Status CheckSocketPath(const std::string& path) {
  constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMaxPathBytes) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kFieldTooLong, "unix_listen",
        absl::StrCat("a socket's path has at most ", kMaxPathBytes, " bytes, got ", path.size()),
        {{"limit", absl::StrCat(kMaxPathBytes)}});
  }
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) return CannotListen(path, "the path exists but is not a socket");
  if (MayBeServed(path)) return CannotListen(path, "another server already listens on this path");
  return absl::OkStatus();
}

PrivateFiles::PrivateFiles() : before_(umask(0077)) {}

PrivateFiles::~PrivateFiles() { umask(before_); }

namespace {

absl::Status CannotListen(absl::string_view field, const std::string& address, const char* why,
                          absl::string_view hint) {
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kAddressNotAvailable, field,
                   absl::StrCat("cannot listen on ", address, ": ", why, "; ", hint),
                   {{"address", address}});
}

absl::Status CannotListenTcp(absl::string_view flag, const std::string& address, const char* why) {
  return CannotListen(flag, address, why,
                      "is the port in use, or does the address belong to another machine?");
}

// A socket address, as bind() takes it.
struct SocketName {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  void SetPort(in_port_t port) {
    if (storage.ss_family == AF_INET6) {
      reinterpret_cast<sockaddr_in6&>(storage).sin6_port = port;
    } else {
      reinterpret_cast<sockaddr_in&>(storage).sin_port = port;
    }
  }
};

// A connection is closed if its peer acknowledges no data for this long. gRPC's own listener uses
// the same limit.
constexpr int kMaxUnacknowledgedMs = 20'000;

bool Bind(int fd, const SocketName& name) {
  const int on = 1;
  const int off = 0;
  // Accepted connections inherit both options. Without TCP_NODELAY an answer would wait for the
  // acknowledgement of the previous one.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kMaxUnacknowledgedMs,
             sizeof(kMaxUnacknowledgedMs));
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool any =
      name.storage.ss_family == AF_INET6 &&
      IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(name.storage).sin6_addr);
  if (name.storage.ss_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, any ? &off : &on, sizeof(on));
  }
  return bind(fd, name.get(), name.length) == 0 && listen(fd, SOMAXCONN) == 0;
}

// Returns a non-blocking socket that is bound and listening, or -1 with errno set.
int BoundSocket(const SocketName& name) {
  const int fd = socket(name.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || Bind(fd, name)) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool IsWildcard(absl::string_view host) { return host == "0.0.0.0" || host == "::"; }

absl::StatusOr<std::vector<SocketName>> Resolve(const std::string& address,
                                                absl::string_view flag) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return CannotListenTcp(flag, address, "expected HOST:PORT");
  std::string host = address.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<SocketName> names;
  // One socket on [::] serves both families. On a machine without IPv6, 0.0.0.0 is used.
  const std::vector<std::string> hosts =
      IsWildcard(host) ? std::vector<std::string>{"::", "0.0.0.0"} : std::vector{host};
  for (const std::string& one : hosts) {
    if (const int error = getaddrinfo(one.c_str(), address.c_str() + colon + 1, &hints, &found)) {
      return CannotListenTcp(flag, address, gai_strerror(error));
    }
    for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
      SocketName& name = names.emplace_back();
      std::memcpy(&name.storage, info->ai_addr, info->ai_addrlen);
      name.length = info->ai_addrlen;
    }
    freeaddrinfo(found);
  }
  return names;
}

// Whether `error` means that this machine lacks the address family (IPv4 or IPv6).
bool IsMissingFamily(int error) { return error == EAFNOSUPPORT || error == EADDRNOTAVAIL; }

int PortOf(int fd) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  PHIMAP_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) == 0);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

// Binds a socket for each of `names` whose address family this machine has, all on the same port.
// If `first_alone`, stops after the first such socket. Returns 0, or an errno value with `fds`
// empty.
int BindAll(std::vector<SocketName> names, bool first_alone, std::vector<int>& fds) {
  int missing = EADDRNOTAVAIL;
  for (SocketName& name : names) {
    if (!fds.empty()) name.SetPort(htons(static_cast<uint16_t>(PortOf(fds[0]))));
    const int fd = BoundSocket(name);
    if (fd >= 0) {
      fds.push_back(fd);
      if (first_alone) break;
    } else if (missing = errno; !IsMissingFamily(missing)) {
      for (const int bound : fds) close(bound);
      fds.clear();
      return missing;
    }
  }
  return fds.empty() ? missing : 0;
}

}  // namespace

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::exchange(other.path_, "")),
      inode_(other.inode_) {}

ListeningSocket::~ListeningSocket() {
  struct stat file {};
  // If another process has meanwhile put its own file at the path, that file is kept.
  if (!path_.empty() && lstat(path_.c_str(), &file) == 0 && file.st_ino == inode_) {
    unlink(path_.c_str());
  }
  if (fd_ >= 0) close(fd_);
}

int ListeningSocket::port() const { return PortOf(fd_); }

absl::StatusOr<std::vector<ListeningSocket>> ListeningSocket::Tcp(const std::string& address,
                                                                  absl::string_view flag) {
  // A free port that the system picked for the first address may be in use on another address.
  constexpr int kMaxAttempts = 16;
  const bool any_port = absl::EndsWith(address, ":0");
  const absl::string_view host = absl::string_view(address).substr(0, address.rfind(':'));
  const bool first_alone = IsWildcard(host) || host == "[::]";
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<SocketName> names, Resolve(address, flag));
  std::vector<int> fds;
  int error = BindAll(names, first_alone, fds);
  for (int i = 1; i < kMaxAttempts && any_port && error == EADDRINUSE; ++i) {
    error = BindAll(names, first_alone, fds);
  }
  if (error != 0) return CannotListenTcp(flag, address, std::strerror(error));
  std::vector<ListeningSocket> sockets;
  for (const int fd : fds) sockets.push_back(ListeningSocket(fd));
  return sockets;
}

absl::StatusOr<ListeningSocket> ListeningSocket::Unix(const std::string& path, unsigned mode) {
  PHIMAP_RETURN_IF_ERROR(CheckSocketPath(path));
  SocketName name;
  auto& unix_name = reinterpret_cast<sockaddr_un&>(name.storage);
  unix_name.sun_family = AF_UNIX;
  std::memcpy(unix_name.sun_path, path.c_str(), path.size() + 1);
  name.length = sizeof(unix_name);
  ListeningSocket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto failed = [&path] {
    return CannotListen("unix_listen", path, std::strerror(errno),
                        "does its folder exist, and may this user write there?");
  };
  if (socket.fd_ < 0) return failed();
  unlink(path.c_str());
  {
    const PrivateFiles mine;
    if (bind(socket.fd_, name.get(), name.length) != 0) return failed();
  }
  chmod(path.c_str(), mode);  // the umask of PrivateFiles leaves the execute permission
  socket.path_ = path;
  struct stat file {};
  if (lstat(path.c_str(), &file) == 0) socket.inode_ = file.st_ino;
  if (listen(socket.fd_, SOMAXCONN) != 0) return failed();
  return socket;
}

}  // namespace phimap
