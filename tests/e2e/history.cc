#include "tests/e2e/history.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace phimap::e2e {
namespace {

// A write and the reads of its value.
struct Zone {
  int64_t value = 0;
  Instant first_end = kNever;
  Instant last_begin = -kNever;

  void Add(Instant begin, Instant end) {
    first_end = std::min(first_end, end);
    last_begin = std::max(last_begin, begin);
  }
  // If this is true, the alias must have had this value at every moment from first_end to
  // last_begin.
  bool forward() const { return first_end < last_begin; }
  Instant low() const { return std::min(first_end, last_begin); }
  Instant high() const { return std::max(first_end, last_begin); }
};

}  // namespace

std::string FindContradiction(int64_t initial, const std::vector<Write>& writes,
                              const std::vector<Read>& reads) {
  std::map<int64_t, Zone> zones;
  std::map<int64_t, Instant> begun;
  zones[initial] = {.value = initial, .first_end = -kNever, .last_begin = -kNever};
  begun[initial] = -kNever;
  std::set<int64_t> refused;
  for (const Write& write : writes) {
    if (write.refused) {
      refused.insert(write.value);
      continue;
    }
    Zone& zone = zones[write.value];
    zone.value = write.value;
    zone.Add(write.begin, write.end);
    if (!begun.emplace(write.value, write.begin).second) {
      return absl::StrCat(write.value, " was written twice");
    }
  }
  for (const Read& read : reads) {
    if (refused.contains(read.value)) {
      return absl::StrCat(read.value, " was read, but its write was said not to have been made");
    }
    const auto written = begun.find(read.value);
    if (written == begun.end()) return absl::StrCat(read.value, " was read and never written");
    if (read.end < written->second) {
      return absl::StrCat(read.value, " was read before its write began");
    }
    zones[read.value].Add(read.begin, read.end);
  }
  std::vector<Zone> forward;
  std::vector<Zone> backward;
  for (const auto& [value, zone] : zones) (zone.forward() ? forward : backward).push_back(zone);
  std::sort(forward.begin(), forward.end(),
            [](const Zone& a, const Zone& b) { return a.low() < b.low(); });
  for (size_t i = 1; i < forward.size(); ++i) {
    if (forward[i].low() < forward[i - 1].high()) {
      return absl::StrCat("at ", forward[i].low(), " the alias would have been at ",
                          forward[i - 1].value, " and at ", forward[i].value);
    }
  }
  for (const Zone& within : backward) {
    // A write that was not answered, and whose value was never read, may not have happened.
    if (within.first_end == kNever) continue;
    for (const Zone& around : forward) {
      if (around.low() < within.low() && within.high() < around.high()) {
        return absl::StrCat(within.value, " was written while the alias was at ", around.value);
      }
    }
  }
  return "";
}

std::string FindStaleRead(int64_t initial, const std::vector<Write>& writes,
                          const std::vector<Read>& reads, double limit) {
  std::map<int64_t, Write> written = {
      {initial, {.value = initial, .begin = -kNever, .end = -kNever}}};
  for (const Write& write : writes) written[write.value] = write;
  // Whether the value of `older` had been replaced, or not yet written, when `newer` was written.
  const auto is_older = [&](int64_t older, int64_t newer) {
    const auto first = written.find(older);
    const auto second = written.find(newer);
    return first != written.end() && second != written.end() &&
           first->second.end < second->second.begin;
  };
  for (const Read& read : reads) {
    for (const Write& write : writes) {
      if (is_older(read.value, write.value) && write.end + limit < read.begin) {
        return absl::StrCat(read.value, " was read ", read.begin - write.end, " s after ",
                            write.value, " had come in its place");
      }
    }
    for (const Read& other : reads) {
      if (other.server != read.server || other.end >= read.begin) continue;
      if (is_older(read.value, other.value)) {
        return absl::StrCat("server ", read.server, " answered ", other.value, " and later ",
                            read.value, ", which is older");
      }
    }
  }
  return "";
}

}  // namespace phimap::e2e
