// A listening socket, on a TCP address or on a Unix-domain path.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_LISTENING_SOCKET_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_LISTENING_SOCKET_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Checks of addresses to listen on.

// Whether only this machine can reach `address`: 127.0.0.0/8 ("127.0.0.1:7450"), "[::1]:7450",
// "localhost:7450" and "unix:/run/phimapd.sock". Other host names do not count, because the
// addresses that they resolve to may change.
bool IsLoopbackAddress(absl::string_view address);

// Returns INVALID_ARGUMENT (reason ADDRESS_INVALID) that names `flag`, unless `address` is
// "HOST:PORT" with a port in 0..65535, or "unix:PATH". Does not check whether the host exists.
absl::Status CheckAddress(absl::string_view flag, absl::string_view address);

// Returns INVALID_ARGUMENT (reason ADDRESS_NOT_LOOPBACK) that names `flag`, unless `address` is a
// loopback address or `allowed` is true.
absl::Status CheckReachable(absl::string_view flag, absl::string_view address, bool allowed);

// Returns `address` with its port replaced by `port`, to show which port was chosen for port 0. A
// unix: address is returned unchanged.
std::string WithPort(absl::string_view address, int port);

// Checks and file permissions for Unix-domain sockets that the server listens on.

// Prefix of Unix-domain addresses in gRPC: "unix:" and a path.
inline constexpr absl::string_view kUnixScheme = "unix:";

// Checks that a listener may replace whatever is at `path`: the path must not exist, or must be a
// socket on which no server listens. Replacing the socket of a running server would take over its
// clients. Returns FAILED_PRECONDITION for a socket in use and for a file that is not a socket,
// INVALID_ARGUMENT for a path that is too long for a socket.
absl::Status CheckSocketPath(const std::string& path);

// While a PrivateFiles exists, files that the process creates are accessible to this user only. It
// sets the umask of the whole process, so keep it only while binding a socket. Calling chmod after
// the bind would leave a moment in which other users could connect.
class PrivateFiles {
 public:
  PrivateFiles();
  ~PrivateFiles();
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

 private:
  const mode_t before_;
};

// Owns the socket and, for a Unix-domain socket, its file. The destructor closes the socket and
// removes the file.
class ListeningSocket {
 public:
  // Listens on "HOST:PORT": on all addresses that HOST resolves to, with the same port. The hosts
  // 0.0.0.0 and [::] both mean all addresses of IPv4 and IPv6. Port 0 picks a free port. Returns
  // FAILED_PRECONDITION (reason ADDRESS_NOT_AVAILABLE), about the flag `flag`, with the system's
  // reason.
  static absl::StatusOr<std::vector<ListeningSocket>> Tcp(const std::string& address,
                                                          absl::string_view flag = "listen");
  // Listens on a path, for those whom `mode` lets connect, by default this user only. Replaces a
  // socket that a dead server left at the path. Errors: those of Tcp and of CheckSocketPath.
  static absl::StatusOr<ListeningSocket> Unix(const std::string& path, unsigned mode = 0600);

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

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_LISTENING_SOCKET_H_
