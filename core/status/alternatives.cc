#include "core/status/alternatives.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/check.h"

namespace phimap {

std::string Alternatives(absl::Span<const absl::string_view> names) {
  PHIMAP_CHECK(!names.empty());
  const auto first = names.first(names.size() - 1);
  return absl::StrCat(absl::StrJoin(first, ", "), first.empty() ? "" : " or ", names.back());
}

std::string Alternatives(absl::Span<const std::string> names) {
  return Alternatives(std::vector<absl::string_view>(names.begin(), names.end()));
}

}  // namespace phimap
