// Values that clients read from an alias while others moved it, and a check that they are possible.
#ifndef PHIMAP_TESTS_E2E_HISTORY_H_
#define PHIMAP_TESTS_E2E_HISTORY_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace phimap::e2e {

// Seconds on one clock, whichever.
using Instant = double;
inline constexpr Instant kNever = std::numeric_limits<double>::infinity();

// A call that moved the alias to `value`, which no other call does. A call without an answer may
// have happened at any time after it began, or not at all: its end is kNever.
struct Write {
  int64_t value = 0;
  Instant begin = 0;
  Instant end = kNever;
  // The number that its answer told; 0 when there was none.
  int64_t revision = 0;
};

// A call that was answered by `value`.
struct Read {
  int64_t value = 0;
  Instant begin = 0;
  Instant end = 0;
  // Which server answered it.
  int server = 0;
};

// Whether some order of all calls, in which each lies between its begin and its end, makes every
// read see the write before it: "" if so, otherwise what contradicts it. The alias has the value
// `initial` before.
//
// Source: P. B. Gibbons and E. Korach, "Testing shared memories", SIAM J. Comput. 26(4), 1997,
// section 4: with values that are written once, a write and its reads form a zone, from the first
// of their ends to the last of their begins. Zones whose end comes before their begin ("forward")
// must not overlap, and no other zone may lie within a forward one.
std::string FindContradiction(int64_t initial, const std::vector<Write>& writes,
                              const std::vector<Read>& reads);

// Whether reads that ask for nothing are at most `limit` seconds old, and none on one server goes
// back behind another that had ended before it began: "" if so. Writes are in the order of their
// revisions; those without one count as unknown.
std::string FindStaleRead(int64_t initial, const std::vector<Write>& writes,
                          const std::vector<Read>& reads, double limit);

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_HISTORY_H_
