#include "server/transport/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

absl::Status CannotListen(const std::string& path, absl::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "ADDRESS_NOT_AVAILABLE", "unix_listen",
                   absl::StrCat("cannot listen on ", path, ": ", why), {{"address", path}});
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
        absl::StatusCode::kInvalidArgument, "FIELD_TOO_LONG", "unix_listen",
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

}  // namespace phimap
