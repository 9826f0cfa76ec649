// Limits that the control groups of this process set: of cores, of memory, of threads.
//
// Reading (files) is separate from understanding (pure functions).
#ifndef PHIMAP_CORE_THREAD_CGROUP_H_
#define PHIMAP_CORE_THREAD_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace phimap {

// Paths of the process in the hierarchies of cgroups.
struct CgroupPaths {
  // Path in the line "0::/path" (cgroup v2).
  std::optional<std::string> v2;
  // From the line whose controllers include the wanted one.
  std::optional<std::string> v1;
};
// `text`: the content of /proc/self/cgroup. `controller`: of cgroup v1, such as "cpu".
CgroupPaths ParseProcSelfCgroup(absl::string_view text, absl::string_view controller);

// Returns the path and all its parents, because a limit of any of them applies. The root comes
// last: for "/a/b", the result is "/a/b", "/a", "".
std::vector<std::string> WithAncestors(absl::string_view path);

// Folders of the cgroups of this process and of all their parents.
struct CgroupFolders {
  std::vector<std::string> v2;
  std::vector<std::string> v1;
};
CgroupFolders CgroupFoldersOfThisProcess(absl::string_view controller);

// Returns the content of a file, or nullopt if it cannot be read.
std::optional<std::string> ReadSmallFile(const std::string& path);

// Returns the least whole number in the files `v2_file` and `v1_file` of the folders of this
// process, or nullopt if there is none. A file that says "max", or cgroup v1's greatest number,
// sets no limit.
std::optional<int64_t> LeastCgroupLimit(absl::string_view controller, absl::string_view v2_file,
                                        absl::string_view v1_file);

// Returns the least number of `texts`, each the content of a file, as LeastCgroupLimit does.
std::optional<int64_t> LeastLimit(const std::vector<std::string>& texts);

}  // namespace phimap

#endif  // PHIMAP_CORE_THREAD_CGROUP_H_
