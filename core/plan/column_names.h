// The names of the columns that a version maps, in order. They show whether the columns of rows are
// in the version's order. Features depend on the order alone; no engine reads names.
#ifndef PHIMAP_CORE_PLAN_COLUMN_NAMES_H_
#define PHIMAP_CORE_PLAN_COLUMN_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Maximum bytes of one name, and of all names of a version.
inline constexpr int64_t kMaxColumnNameBytes = 256;
inline constexpr int64_t kMaxColumnNamesBytes = int64_t{1} << 20;

// Returns OK if every name is non-empty, unique and at most kMaxColumnNameBytes long, and all names
// together take at most kMaxColumnNamesBytes. Otherwise INVALID_ARGUMENT (COLUMN_NAMES_INVALID,
// field "column_names[i]"). Does not check whether the names may be shown to people.
absl::Status CheckColumnNames(const std::vector<std::string>& names);

// Encodes the names as a section of an artifact. Returns "" if there are no names.
std::string EncodeColumnNames(const std::vector<std::string>& names);
// Decodes the section that EncodeColumnNames returns. DATA_LOSS for bytes that EncodeColumnNames
// cannot have written, and for names that CheckColumnNames rejects. `offset` is the offset of
// `bytes` in the artifact.
absl::StatusOr<std::vector<std::string>> DecodeColumnNames(absl::string_view bytes, int64_t offset);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_COLUMN_NAMES_H_
