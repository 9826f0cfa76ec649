// The configuration file of phimapd: TOML, in which each key is the name of a flag without its
// dashes.
//
// Example:
//   log_level = "warning"
//   max_builds = 4
//   proxy = ["10.0.0.7", "10.0.0.8"]
#ifndef PHIMAP_SERVER_CONFIG_FILE_H_
#define PHIMAP_SERVER_CONFIG_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace phimap {

// The kinds of values that settings have. kNumber: with or without a decimal point; an entry of the
// file without one is a kInteger. kOther stands for what no setting has: dates, tables, and arrays
// of anything but strings.
enum class ValueKind { kBoolean, kInteger, kNumber, kText, kTexts, kOther };

// A key of the file with its value.
struct ConfigEntry {
  std::string key;
  ValueKind kind = ValueKind::kOther;
  // TOML's name of the kind, such as "floating-point".
  std::string type;
  // One text, or as many as an array has. Empty for kOther.
  std::vector<std::string> values;
  // Counted from 1.
  int line = 0;
};

// Returns the entries of the file in the order of their lines. Does not know which keys there are.
// Errors: those of FileSystem::ReadFile for a file that cannot be read or has over 1 MiB, and
// INVALID_ARGUMENT, with line and column, if it is not TOML. Errors never quote a value, because it
// may be a secret.
absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CONFIG_FILE_H_
