// Numbers and names as people read them in messages.
#ifndef PHIMAP_CORE_STATUS_WORDS_H_
#define PHIMAP_CORE_STATUS_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace phimap {

// Returns the noun in the number that `count` asks for: "row" for 1, "rows" for all other counts.
// The plurals are English's regular ones: "class" → "classes", "entry" → "entries". Pure.
std::string NounFor(int64_t count, absl::string_view noun);
// Returns a count with its noun: "1 row", "20000 rows". Pure.
std::string CountOf(int64_t count, absl::string_view noun);

// Formats an integer with separators: 1234567 → "1,234,567". Pure.
std::string WithThousands(int64_t number);
// CountOf with separators: "20,000 rows". Pure.
std::string LongCountOf(int64_t count, absl::string_view noun);

// Formats a size: 1258291 → "1.2 MiB"; under 1 KiB "17 bytes". Pure.
std::string SizeText(int64_t size_bytes);

// Returns the entry of `known` that is closest to `word`; null if every entry differs by more than
// a third of the letters of `word`. The first `unmeant` letters of `word` are not counted, such as
// the dashes of a flag. Differences are letters to insert, delete, replace or swap with a
// neighbour. Pure.
const std::string* NearestTo(absl::string_view word, size_t unmeant,
                             const std::vector<std::string>& known);

}  // namespace phimap

#endif  // PHIMAP_CORE_STATUS_WORDS_H_
