#include "server/postgres/pass_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace phimap {

std::string PassFileProblem(const std::string& path) {
  // Like libpq, uses stat to get the mode, which needs no permission to read the file.
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return absl::StrCat("cannot find ", path, ": ", std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return absl::StrCat(path, " is not a regular file");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::StrFormat("%s has mode %04o, so libpq ignores it: chmod 0600", path,
                           status.st_mode & 07777);
  }
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::StrCat("cannot open ", path, ": ", std::strerror(errno));
  close(descriptor);
  return "";
}

}  // namespace phimap
