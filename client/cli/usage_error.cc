#include "client/cli/usage_error.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace phimap::cli {
namespace {

// Number of letters to insert, delete, replace or swap with a neighbour to turn one word into the
// other (optimal string alignment).
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

// Returns the entry of `known` that is closest to `word`; null if every entry differs by more than
// a third of the letters of `word`. The first `unmeant` letters of `word` are not counted.
const std::string* NearestTo(absl::string_view word, size_t unmeant,
                             const std::vector<std::string>& known) {
  const std::string* meant = nullptr;
  size_t fewest = (word.size() - std::min<size_t>(word.size(), unmeant)) / 3 + 1;
  for (const std::string& candidate : known) {
    const size_t distance = Distance(word, candidate);
    if (distance >= fewest) continue;
    fewest = distance;
    meant = &candidate;
  }
  return meant;
}

}  // namespace

std::string UnknownFlagText(absl::string_view word, const std::vector<std::string>& known) {
  const absl::string_view flag = word.substr(0, word.find('='));
  const std::string* const meant = NearestTo(flag, /*unmeant=*/2, known);
  return absl::StrCat("unknown flag ", flag,
                      meant == nullptr ? "" : absl::StrCat("; did you mean ", *meant, "?"));
}

std::string UnknownCommandText(absl::string_view outer, absl::string_view word,
                               const std::vector<std::string>& known) {
  const std::string* const meant = NearestTo(word, /*unmeant=*/0, known);
  return absl::StrCat(outer, " has no command '", word, "'; ",
                      meant == nullptr ? "" : absl::StrCat("did you mean ", *meant, "? "),
                      "the commands are ", absl::StrJoin(known, ", "));
}

std::string MissingCommandText(absl::string_view outer, const std::vector<std::string>& known) {
  return absl::StrCat("a command of ", outer, " is missing; the commands are ",
                      absl::StrJoin(known, ", "));
}

}  // namespace phimap::cli
