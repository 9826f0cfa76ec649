#include "server/registry/load_queue.h"

#include <algorithm>
#include <utility>

namespace phimap {

LoadKey LoadKey::Of(const Reference& reference) {
  return {std::string(reference.mapping), reference.number.value_or(0),
          std::string(reference.alias), std::string(reference.digest)};
}

Reference LoadKey::reference() const {
  Reference reference;
  reference.mapping = mapping;
  if (by_number()) reference.number = number;
  reference.alias = alias;
  reference.digest = digest;
  return reference;
}

void LoadQueue::Advance(const LoadKey& key) {
  const auto found = std::find(last_.begin(), last_.end(), key);
  if (found == last_.end()) return;
  last_.erase(found);
  first_.push_back(key);
}

std::optional<LoadKey> LoadQueue::Take() {
  std::deque<LoadKey>& line = first_.empty() ? last_ : first_;
  if (line.empty()) return std::nullopt;
  LoadKey key = std::move(line.front());
  line.pop_front();
  return key;
}

}  // namespace phimap
