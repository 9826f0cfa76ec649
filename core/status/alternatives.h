// Lists of names in error messages.
#ifndef PHIMAP_CORE_STATUS_ALTERNATIVES_H_
#define PHIMAP_CORE_STATUS_ALTERNATIVES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace phimap {

// Returns "a", "a or b", or "a, b or c". REQUIRES: at least one name.
std::string Alternatives(absl::Span<const absl::string_view> names);
std::string Alternatives(absl::Span<const std::string> names);

}  // namespace phimap

#endif  // PHIMAP_CORE_STATUS_ALTERNATIVES_H_
