// Error messages about columns whose names differ from a version's.
#ifndef PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_
#define PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::client {

// Builds the error kInvalidArgument (reason COLUMN_NAMES_MISMATCH, field "columns"): how the given
// columns differ from those of `reference`, both lists, and the remedy `then` at the end. REQUIRES:
// they differ.
absl::Status ColumnsDiffer(absl::string_view reference, const std::vector<std::string>& expected,
                           const std::vector<std::string>& came, absl::string_view then);

// Names of `names` that are not among `others`, in their order.
std::vector<std::string> NamesNotAmong(const std::vector<std::string>& names,
                                       const std::vector<std::string>& others);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_COLUMN_NAMES_H_
