// The versions that aliases name and that are still to be loaded in the background, in their order.
//
// Not thread-safe; the registry guards it.
#ifndef PHIMAP_SERVER_REGISTRY_WARM_LINE_H_
#define PHIMAP_SERVER_REGISTRY_WARM_LINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/records.h"

namespace phimap {

class WarmLine {
 public:
  using MoveTimes = std::map<VersionName, absl::Time>;

  // Adds a version before all others, or moves it there.
  void PushFront(VersionName version);
  // Adds a version behind all others. REQUIRES: it is not in the line.
  void PushBack(VersionName version) { line_.push_back(std::move(version)); }
  // Removes and returns the first of the line; empty if there is none.
  std::optional<VersionName> Take();
  // Removes the version from the line, if it is in it.
  void Remove(absl::string_view mapping, int64_t number);
  void Clear() { line_.clear(); }
  // The alias that was moved last comes first; versions without a time stay before the others.
  void Sort(const MoveTimes& times);

  bool empty() const { return line_.empty(); }
  int64_t size() const { return static_cast<int64_t>(line_.size()); }

 private:
  std::deque<VersionName> line_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_WARM_LINE_H_
