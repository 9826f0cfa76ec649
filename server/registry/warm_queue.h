// The queue of versions that aliases point to and that are still to be loaded in the background.
//
// Not thread-safe; the registry guards it.
#ifndef PHIMAP_SERVER_REGISTRY_WARM_QUEUE_H_
#define PHIMAP_SERVER_REGISTRY_WARM_QUEUE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/records.h"

namespace phimap {

class WarmQueue {
 public:
  using MoveTimes = std::map<VersionName, absl::Time>;

  // Adds a version at the front, or moves it there.
  void PushFront(VersionName version);
  // Adds a version at the end. REQUIRES: it is not in the queue.
  void PushBack(VersionName version) { line_.push_back(std::move(version)); }
  // Removes and returns the first version; empty if there is none.
  std::optional<VersionName> Take();
  // Removes the version if it is in the queue.
  void Remove(absl::string_view mapping, int64_t number);
  void Clear() { line_.clear(); }
  // Sorts by `times`, latest first. Versions without a time come before the others.
  void Sort(const MoveTimes& times);

  bool empty() const { return line_.empty(); }
  int64_t size() const { return static_cast<int64_t>(line_.size()); }

 private:
  std::deque<VersionName> line_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_WARM_QUEUE_H_
