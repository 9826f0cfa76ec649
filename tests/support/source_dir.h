// Finds the source tree of this build, for tests that read its files.
#ifndef PHIMAP_TESTS_SUPPORT_SOURCE_DIR_H_
#define PHIMAP_TESTS_SUPPORT_SOURCE_DIR_H_

#include <string>
#include <string_view>

namespace phimap::testing {

// Returns the absolute path of `path`, which is relative to the top folder of the sources; the top
// folder itself if `path` is empty.
std::string SourcePath(std::string_view path = "");

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_SOURCE_DIR_H_
