// Plain client sockets, for tests of listeners.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_CLIENT_SOCKET_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_CLIENT_SOCKET_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/status/check.h"

namespace phimap::testing {

class ClientSocket {
 public:
  explicit ClientSocket(int family = AF_INET)
      : family_(family), fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~ClientSocket() { close(fd_); }
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  // Connects to a port of the loopback address of the socket's address family. Returns 0, or errno.
  int Connect(int port) {
    if (family_ == AF_INET6) {
      sockaddr_in6 name{};
      name.sin6_family = AF_INET6;
      name.sin6_addr = in6addr_loopback;
      name.sin6_port = htons(static_cast<uint16_t>(port));
      return ConnectTo(name);
    }
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<uint16_t>(port));
    return ConnectTo(name);
  }
  // Connects to the Unix-domain socket at `path`. Returns 0, or errno. REQUIRES: the family is
  // AF_UNIX.
  int Connect(const std::string& path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path.c_str(), sizeof(name.sun_path) - 1);
    return ConnectTo(name);
  }
  // Reads until the other end hangs up.
  void AwaitHangUp() {
    char bytes[256];
    while (recv(fd_, bytes, sizeof(bytes), 0) > 0) {
    }
  }

 private:
  template <typename Name>
  int ConnectTo(const Name& name) {
    return connect(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 ? 0 : errno;
  }

  const int family_;
  const int fd_;
};

// Connects to a port of 127.0.0.1. Returns the socket, which is the caller's to close.
inline int ConnectToLoopback(int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  PHIMAP_CHECK(connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0);
  return fd;
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_CLIENT_SOCKET_H_
