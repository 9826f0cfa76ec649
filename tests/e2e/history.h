// A history of the values that clients wrote to and read from one alias, and checks whether the
// history is possible.
#ifndef PHIMAP_TESTS_E2E_HISTORY_H_
#define PHIMAP_TESTS_E2E_HISTORY_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace phimap::e2e {

// A time in seconds. All times of a history come from the same clock.
using Instant = double;
inline constexpr Instant kNever = std::numeric_limits<double>::infinity();

// A call that moved the alias to `value`. No other call writes this value. If the call was not
// answered, its end is kNever: the write may have happened at any time after the call began, or not
// at all.
struct Write {
  int64_t value = 0;
  Instant begin = 0;
  Instant end = kNever;
  // The answer was an error that says that the alias was not moved.
  bool refused = false;
};

// A call that was answered when the alias had the value `value`.
struct Read {
  int64_t value = 0;
  Instant begin = 0;
  Instant end = 0;
  // The number of the server that answered.
  int server = 0;
};

// Checks whether the history is possible, that is, linearizable: there must be an order of all
// calls in which each call takes effect between its begin and its end, and each read returns the
// value of the last write before it. Returns "" if so, and otherwise a text that describes a
// contradiction. The alias has the value `initial` at the start.
//
// Source: P. B. Gibbons and E. Korach, "Testing shared memories", SIAM J. Comput. 26(4), 1997,
// section 4. Since each value is written only once, a write and the reads of its value form a zone.
// The zone lies between the earliest end of these calls and their latest begin. If the earliest end
// comes before the latest begin, the zone is called forward. Forward zones must not overlap, and no
// other zone may lie within a forward zone.
std::string FindContradiction(int64_t initial, const std::vector<Write>& writes,
                              const std::vector<Read>& reads);

// Checks reads that did not require a revision. No read may return a value that had been replaced
// more than `limit` seconds before the read began. If one read on a server ended before another one
// on the same server began, the later read must not return an older value. Returns "" if both hold,
// and otherwise a text that describes a contradiction. A value is older than another if its write
// ended before the other's began; the revisions that answers tell do not order writes that overlap,
// because an answer may tell a later revision than that of its own change.
std::string FindStaleRead(int64_t initial, const std::vector<Write>& writes,
                          const std::vector<Read>& reads, double limit);

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_HISTORY_H_
