// Unix-domain sockets to listen on: the files that may be at the path, and the users that may
// connect.
#ifndef PHIMAP_SERVER_TRANSPORT_UNIX_SOCKET_H_
#define PHIMAP_SERVER_TRANSPORT_UNIX_SOCKET_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Names that gRPC takes are "unix:" and a path.
inline constexpr absl::string_view kUnixScheme = "unix:";

// gRPC would remove any socket that it finds at the path, even one that another server serves, and
// take over its clients. Only a socket that no server answers at is therefore left to gRPC.
// FAILED_PRECONDITION for a socket in use and for a file that is not a socket, INVALID_ARGUMENT for
// a path longer than a socket's name can be.
absl::Status CheckSocketPath(const std::string& path);

// Files made while it lives belong to this user alone. The mask is the whole process's, so it lives
// for the moment of binding; a mode set afterwards would come too late for a quick client.
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
