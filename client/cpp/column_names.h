// Error messages about columns whose names differ from a version's.
#ifndef PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_
#define PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::client {

// Returns kInvalidArgument (reason COLUMN_NAMES_MISMATCH, field "columns"). The message says how
// `came`, the columns of the rows, differ from `expected`, those of `reference`, shows both lists,
// and ends with the remedy `then` unless it is empty. REQUIRES: the lists differ.
absl::Status ColumnsDiffer(absl::string_view reference, const std::vector<std::string>& expected,
                           const std::vector<std::string>& came, absl::string_view then);

// Returns the elements of `names` that are not in `others`, in the order of `names`.
std::vector<std::string> NamesNotAmong(const std::vector<std::string>& names,
                                       const std::vector<std::string>& others);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_
