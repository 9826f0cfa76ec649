// Files that the words of a command line name.
#ifndef PHIMAP_CLIENT_FILES_INPUT_PATHS_H_
#define PHIMAP_CLIENT_FILES_INPUT_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap::cli {

// The files of all words, in the order of the words. A word is a path, "-" for standard input, or
// a pattern with *, ? or […], whose matches come in the order of their bytes (part-10 before
// part-2). A file whose name looks like a pattern is that file. kInvalidArgument for a pattern that
// nothing matches and for standard input named twice.
absl::StatusOr<std::vector<std::string>> FilesNamed(const std::vector<std::string>& words);

// The path without the ending of a compressed file: "rows.csv" of "rows.csv.gz".
absl::string_view WithoutCompression(absl::string_view path);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_INPUT_PATHS_H_
