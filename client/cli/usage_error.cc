#include "client/cli/usage_error.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace phimap::cli {
namespace {

// Letters to add, leave out, exchange or swap with their neighbour, to get from one to the other
// (optimal string alignment).
size_t Distance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> before_last(to.size() + 1);
  std::vector<size_t> last(to.size() + 1);
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t exchanged = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, exchanged});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[to.size()];
}

}  // namespace

std::string UnknownFlagText(absl::string_view word, const std::vector<std::string>& known) {
  const absl::string_view flag = word.substr(0, word.find('='));
  const std::string* meant = nullptr;
  size_t fewest = (flag.size() - std::min<size_t>(flag.size(), 2)) / 3 + 1;
  for (const std::string& candidate : known) {
    const size_t distance = Distance(flag, candidate);
    if (distance >= fewest) continue;
    fewest = distance;
    meant = &candidate;
  }
  return absl::StrCat("unknown flag ", flag,
                      meant == nullptr ? "" : absl::StrCat("; did you mean ", *meant, "?"));
}

}  // namespace phimap::cli
