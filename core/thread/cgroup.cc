#include "core/thread/cgroup.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace phimap {
namespace {

// cgroup v1 writes the greatest multiple of a page for "no limit".
constexpr int64_t kNoLimit = int64_t{1} << 62;

}  // namespace

std::optional<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

CgroupPaths ParseProcSelfCgroup(absl::string_view text, absl::string_view controller) {
  CgroupPaths paths;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[0] == "0" && parts[1].empty()) paths.v2 = std::string(parts[2]);
    for (const absl::string_view name : absl::StrSplit(parts[1], ',')) {
      if (name == controller) paths.v1 = std::string(parts[2]);
    }
  }
  return paths;
}

std::vector<std::string> WithAncestors(absl::string_view path) {
  std::vector<std::string> all;
  while (!path.empty() && path != "/") {
    all.emplace_back(path);
    const size_t slash = path.rfind('/');
    path = slash == absl::string_view::npos ? absl::string_view() : path.substr(0, slash);
  }
  all.emplace_back("");
  return all;
}

CgroupFolders CgroupFoldersOfThisProcess(absl::string_view controller) {
  const CgroupPaths paths =
      ParseProcSelfCgroup(ReadSmallFile("/proc/self/cgroup").value_or(""), controller);
  CgroupFolders folders;
  for (const std::string& path : WithAncestors(paths.v2.value_or(""))) {
    folders.v2.push_back(absl::StrCat("/sys/fs/cgroup", path));
  }
  for (const std::string& path : WithAncestors(paths.v1.value_or(""))) {
    folders.v1.push_back(absl::StrCat("/sys/fs/cgroup/", controller, path));
  }
  return folders;
}

std::optional<int64_t> LeastLimit(const std::vector<std::string>& texts) {
  std::optional<int64_t> least;
  for (const std::string& text : texts) {
    int64_t limit = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &limit)) continue;
    if (limit <= 0 || limit >= kNoLimit) continue;
    least = std::min(least.value_or(limit), limit);
  }
  return least;
}

std::optional<int64_t> LeastCgroupLimit(absl::string_view controller, absl::string_view v2_file,
                                        absl::string_view v1_file) {
  const CgroupFolders folders = CgroupFoldersOfThisProcess(controller);
  std::vector<std::string> texts;
  for (const std::string& folder : folders.v2) {
    texts.push_back(ReadSmallFile(absl::StrCat(folder, "/", v2_file)).value_or(""));
  }
  for (const std::string& folder : folders.v1) {
    texts.push_back(ReadSmallFile(absl::StrCat(folder, "/", v1_file)).value_or(""));
  }
  return LeastLimit(texts);
}

}  // namespace phimap
