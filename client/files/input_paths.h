// Finds the files that the words of a command line name.
#ifndef PHIMAP_CLIENT_FILES_INPUT_PATHS_H_
#define PHIMAP_CLIENT_FILES_INPUT_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap::cli {

// Returns the files of all words, in the order of the words. A word is a path, "-" for standard
// input, or a pattern with *, ? or […], whose matches are in byte order (part-10 before part-2). A
// file whose name looks like a pattern takes precedence. kInvalidArgument for a pattern without
// matches and for standard input named twice.
absl::StatusOr<std::vector<std::string>> FilesNamed(const std::vector<std::string>& words);

// The path without the ending of a compressed file: "rows.csv" of "rows.csv.gz".
absl::string_view WithoutCompression(absl::string_view path);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_INPUT_PATHS_H_
