// A socket that listens: on an address of the network, or on a path of this machine.
#ifndef PHIMAP_SERVER_TRANSPORT_LISTENING_SOCKET_H_
#define PHIMAP_SERVER_TRANSPORT_LISTENING_SOCKET_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace phimap {

// Owns the socket, and the file of a Unix-domain socket: its destruction removes both.
class ListeningSocket {
 public:
  // On "HOST:PORT": on all addresses that HOST resolves to, with one port; on 0.0.0.0 and [::] of
  // both families. Port 0 picks a free one. FAILED_PRECONDITION (reason ADDRESS_NOT_AVAILABLE) with
  // the system's reason.
  static absl::StatusOr<std::vector<ListeningSocket>> Tcp(const std::string& address);
  // Listens on a path that only this user may open (mode 0600). Replaces a socket left by a dead
  // server. Errors: as above, and those of CheckSocketPath.
  static absl::StatusOr<ListeningSocket> Unix(const std::string& path);

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  // Does not block.
  int fd() const { return fd_; }
  // Port of TCP.
  int port() const;

 private:
  explicit ListeningSocket(int fd) : fd_(fd) {}

  int fd_;
  // Path of a Unix-domain socket, with the number of the file that was made for it.
  std::string path_;
  ino_t inode_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_LISTENING_SOCKET_H_
