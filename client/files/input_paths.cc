#include "client/files/input_paths.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

// Expands a pattern. The matches are in byte order, whatever the locale.
absl::StatusOr<std::vector<std::string>> Matches(const std::string& pattern) {
  glob_t found = {};
  const int result = glob(pattern.c_str(), GLOB_NOSORT, /*errfunc=*/nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (result != 0 && result != GLOB_NOMATCH) {
    return absl::InvalidArgumentError(
        absl::StrCat("--input: a folder of the pattern ", pattern, " cannot be read"));
  }
  if (paths.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--input: no file matches the pattern ", pattern));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesNamed(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    struct stat info;
    const bool pattern =
        word.find_first_of("*?[") != std::string::npos && stat(word.c_str(), &info) != 0;
    if (!pattern) {
      paths.push_back(word);
      continue;
    }
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<std::string> matches, Matches(word));
    paths.insert(paths.end(), matches.begin(), matches.end());
  }
  if (std::count(paths.begin(), paths.end(), "-") > 1) {
    return absl::InvalidArgumentError(
        "--input: standard input (-) is given twice, but it can be read only once");
  }
  return paths;
}

absl::string_view WithoutCompression(absl::string_view path) {
  for (const absl::string_view ending : {".gz", ".zst", ".zstd"}) {
    if (absl::EndsWithIgnoreCase(path, ending)) {
      return path.substr(0, path.size() - ending.size());
    }
  }
  return path;
}

}  // namespace phimap::cli
