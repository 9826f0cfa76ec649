// Error messages about columns whose names differ from a version's.
#ifndef PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_
#define PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::client {

// Returns the error for rows whose column names differ from those of the version `reference`:
// kInvalidArgument (reason COLUMN_NAMES_MISMATCH, field "columns"). `came` has the names of the
// rows, and `expected` those of the version. The message says how the lists differ and shows both.
// If `then` is not empty, the message ends with this text, which is the remedy. REQUIRES: the lists
// differ.
absl::Status ColumnsDiffer(absl::string_view reference, const std::vector<std::string>& expected,
                           const std::vector<std::string>& came, absl::string_view then);

// Returns the elements of `names` that are not in `others`, in the order of `names`.
std::vector<std::string> NamesNotAmong(const std::vector<std::string>& names,
                                       const std::vector<std::string>& others);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_
