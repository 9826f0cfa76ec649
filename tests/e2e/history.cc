#include "tests/e2e/history.h"

#include <algorithm>

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
  for (const Write& write : writes) {
    Zone& zone = zones[write.value];
    zone.value = write.value;
    zone.Add(write.begin, write.end);
    if (!begun.emplace(write.value, write.begin).second) {
      return absl::StrCat(write.value, " was written twice");
    }
  }
  for (const Read& read : reads) {
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
  std::map<int64_t, int64_t> revisions = {{initial, 0}};
  for (const Write& write : writes) {
    if (write.revision != 0) revisions[write.value] = write.revision;
  }
  const auto revision_of = [&](const Read& read) -> std::optional<int64_t> {
    const auto found = revisions.find(read.value);
    if (found == revisions.end()) return std::nullopt;
    return found->second;
  };
  for (const Read& read : reads) {
    const std::optional<int64_t> seen = revision_of(read);
    if (!seen.has_value()) continue;
    for (const Write& write : writes) {
      if (write.revision > *seen && write.end + limit < read.begin) {
        return absl::StrCat(read.value, " was read ", read.begin - write.end, " s after ",
                            write.value, " had come in its place");
      }
    }
    for (const Read& other : reads) {
      if (other.server != read.server || other.end >= read.begin) continue;
      const std::optional<int64_t> before = revision_of(other);
      if (before.has_value() && *before > *seen) {
        return absl::StrCat("server ", read.server, " answered ", other.value, " and later ",
                            read.value, ", which is older");
      }
    }
  }
  return "";
}

}  // namespace phimap::e2e
