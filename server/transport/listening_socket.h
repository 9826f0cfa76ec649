// A listening socket, on a TCP address or on a Unix-domain path.
#ifndef PHIMAP_SERVER_TRANSPORT_LISTENING_SOCKET_H_
#define PHIMAP_SERVER_TRANSPORT_LISTENING_SOCKET_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace phimap {

// Owns the socket and, for a Unix-domain socket, its file. The destructor closes the socket and
// removes the file.
class ListeningSocket {
 public:
  // Listens on "HOST:PORT": on all addresses that HOST resolves to, with the same port. The hosts
  // 0.0.0.0 and [::] both mean all addresses of IPv4 and IPv6. Port 0 picks a free port. Returns
  // FAILED_PRECONDITION (reason ADDRESS_NOT_AVAILABLE) with the system's reason.
  static absl::StatusOr<std::vector<ListeningSocket>> Tcp(const std::string& address);
  // Listens on a path, for this user only (mode 0600). Replaces a socket that a dead server left at
  // the path. Errors: those of Tcp and of CheckSocketPath.
  static absl::StatusOr<ListeningSocket> Unix(const std::string& path);

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  // The descriptor, in non-blocking mode.
  int fd() const { return fd_; }
  // The TCP port that the socket is bound to.
  int port() const;

 private:
  explicit ListeningSocket(int fd) : fd_(fd) {}

  int fd_;
  // Path and inode of a Unix-domain socket; an empty path for TCP.
  std::string path_;
  ino_t inode_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_LISTENING_SOCKET_H_
