// Finds the files that are given on a command line.
#ifndef PHIMAP_CLIENT_FILES_INPUT_PATHS_H_
#define PHIMAP_CLIENT_FILES_INPUT_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap::cli {

// Returns the files of all words, in the order of the words. A word is a path, "-" for standard
// input, or a pattern with *, ? or […], whose matches are in byte order (part-10 before part-2). A
// word that is the name of an existing file is not treated as a pattern. kInvalidArgument for a
// pattern without matches, and if standard input is given twice.
absl::StatusOr<std::vector<std::string>> FilesNamed(const std::vector<std::string>& words);

// Returns the path without the ending of a compressed file: "rows.csv" for "rows.csv.gz".
absl::string_view WithoutCompression(absl::string_view path);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_INPUT_PATHS_H_
