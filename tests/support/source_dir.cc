#include "tests/support/source_dir.h"

namespace phimap::testing {

std::string SourcePath(std::string_view path) {
  std::string found = PHIMAP_SOURCE_DIR;
  if (!path.empty()) found.append("/").append(path);
  return found;
}

}  // namespace phimap::testing
