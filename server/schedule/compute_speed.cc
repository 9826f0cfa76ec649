#include "server/schedule/compute_speed.h"

#include <algorithm>

#include "core/status/check.h"

namespace phimap {

void ComputeSpeed::Entry::Add(double rate) {
  recent[batches++ % recent.size()] = rate;
  std::array<double, 9> sorted = recent;
  const int count = std::min<int>(batches, recent.size());
  std::nth_element(sorted.begin(), sorted.begin() + count / 2, sorted.begin() + count);
  median = sorted[count / 2];
}

void ComputeSpeed::Learn(const std::shared_ptr<const Engine>& engine, double multiplications,
                         double seconds) {
  PHIMAP_CHECK(seconds > 0);
  if (Find(engine) == nullptr) {
    std::erase_if(entries_, [](const auto& entry) { return entry.second.engine.expired(); });
    entries_[engine.get()] = {.engine = engine, .recent = {}};
  }
  entries_[engine.get()].Add(multiplications / seconds);
}

double ComputeSpeed::Of(const std::shared_ptr<const Engine>& engine) const {
  const Entry* const known = Find(engine);
  return known == nullptr ? 0 : known->median;
}

const ComputeSpeed::Entry* ComputeSpeed::Find(const std::shared_ptr<const Engine>& engine) const {
  const auto found = entries_.find(engine.get());
  if (found == entries_.end()) return nullptr;
  const std::weak_ptr<const Engine>& owner = found->second.engine;
  const bool same = !owner.owner_before(engine) && !engine.owner_before(owner);
  return same ? &found->second : nullptr;
}

}  // namespace phimap
