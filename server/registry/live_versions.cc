#include "server/registry/live_versions.h"

#include <utility>

#include "core/status/check.h"

namespace phimap {
namespace {

// Handles are copied from handles or from here, and here is guarded: one owner means nobody holds
// it.
bool IsHeld(const std::shared_ptr<const LiveVersion>& version) { return version.use_count() > 1; }

}  // namespace

std::shared_ptr<const LiveVersion> LiveVersions::Find(absl::string_view mapping, int64_t number) {
  const auto by_number = index_.find(mapping);
  if (by_number == index_.end()) return nullptr;
  const auto found = by_number->second.find(number);
  if (found == by_number->second.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return *found->second;
}

bool LiveVersions::MakeRoom(int64_t bytes) {
  // First whether it can be done at all: what cannot fit must not empty the cache.
  int64_t held = 0;
  for (const auto& version : recent_) held += IsHeld(version) ? version->memory_bytes() : 0;
  if (bytes > max_bytes_ - held) return false;
  auto candidate = recent_.end();
  while (bytes > max_bytes_ - bytes_ && candidate != recent_.begin()) {
    --candidate;
    if (IsHeld(*candidate)) continue;
    const VersionRecord& record = (*candidate)->record;
    bytes_ -= (*candidate)->memory_bytes();
    ++evictions_;
    auto& by_number = index_[record.mapping];
    by_number.erase(record.number);
    if (by_number.empty()) index_.erase(record.mapping);
    candidate = recent_.erase(candidate);
  }
  return bytes <= max_bytes_ - bytes_;
}

void LiveVersions::Insert(std::shared_ptr<const LiveVersion> version) {
  PHIMAP_CHECK(version->memory_bytes() <= max_bytes_ - bytes_);
  bytes_ += version->memory_bytes();
  const VersionRecord& record = version->record;
  auto& slot = index_[record.mapping];
  recent_.push_front(std::move(version));
  PHIMAP_CHECK(slot.emplace(recent_.front()->record.number, recent_.begin()).second);
}

}  // namespace phimap
