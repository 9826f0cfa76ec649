#include "server/registry/warm_queue.h"

#include <algorithm>
#include <utility>

namespace phimap {

void WarmQueue::PushFront(VersionName version) {
  Remove(version.mapping, version.number);
  line_.push_front(std::move(version));
}

std::optional<VersionName> WarmQueue::Take() {
  if (line_.empty()) return std::nullopt;
  VersionName first = std::move(line_.front());
  line_.pop_front();
  return first;
}

void WarmQueue::Remove(absl::string_view mapping, int64_t number) {
  const auto is_it = [&](const VersionName& version) {
    return version.number == number && version.mapping == mapping;
  };
  line_.erase(std::remove_if(line_.begin(), line_.end(), is_it), line_.end());
}

void WarmQueue::Sort(const MoveTimes& times) {
  const auto time_of = [&](const VersionName& version) {
    const auto time = times.find(version);
    return time == times.end() ? absl::InfiniteFuture() : time->second;
  };
  std::stable_sort(line_.begin(), line_.end(), [&](const VersionName& a, const VersionName& b) {
    return time_of(a) > time_of(b);
  });
}

}  // namespace phimap
