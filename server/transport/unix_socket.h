// Checks and file permissions for Unix-domain sockets that the server listens on.
#ifndef PHIMAP_SERVER_TRANSPORT_UNIX_SOCKET_H_
#define PHIMAP_SERVER_TRANSPORT_UNIX_SOCKET_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_UNIX_SOCKET_H_
