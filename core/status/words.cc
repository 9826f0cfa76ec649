#include "core/status/words.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace phimap {
namespace {

bool EndsWithConsonantAndY(absl::string_view noun) {
  return noun.size() > 1 && noun.back() == 'y' &&
         !absl::StrContains("aeiou", noun.substr(noun.size() - 2, 1));
}

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

}  // namespace

std::string NounFor(int64_t count, absl::string_view noun) {
  if (count == 1) return std::string(noun);
  if (EndsWithConsonantAndY(noun)) return absl::StrCat(noun.substr(0, noun.size() - 1), "ies");
  const bool hisses = absl::EndsWith(noun, "s") || absl::EndsWith(noun, "x");
  return absl::StrCat(noun, hisses ? "es" : "s");
}

std::string CountOf(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", NounFor(count, noun));
}

std::string WithThousands(int64_t number) {
  std::string text = absl::StrCat(number);
  const int first_digit = number < 0 ? 1 : 0;
  for (int i = static_cast<int>(text.size()) - 3; i > first_digit; i -= 3)
    text.insert(text.begin() + i, ',');
  return text;
}

std::string LongCountOf(int64_t count, absl::string_view noun) {
  return absl::StrCat(WithThousands(count), " ", NounFor(count, noun));
}

std::string SizeText(int64_t size_bytes) {
  if (size_bytes < 1024) return CountOf(size_bytes, "byte");
  double size = static_cast<double>(size_bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = larger;
  }
  return absl::StrFormat("%.1f %s", size, unit);
}

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

}  // namespace phimap
