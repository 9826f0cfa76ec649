#include "server/registry/live_versions.h"

#include <algorithm>
#include <tuple>
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

std::vector<std::shared_ptr<const LiveVersion>> LiveVersions::All() const {
  std::vector<std::shared_ptr<const LiveVersion>> all;
  for (const auto& [mapping, by_number] : index_) {
    for (const auto& [number, version] : by_number) all.push_back(*version);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a->record.mapping, a->record.number) <
           std::tie(b->record.mapping, b->record.number);
  });
  return all;
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
    ++evictions_;
    candidate = Drop(candidate);
  }
  return bytes <= max_bytes_ - bytes_;
}

LiveVersions::Recent::iterator LiveVersions::Drop(Recent::iterator version) {
  const VersionRecord& record = (*version)->record;
  const auto by_number = index_.find(record.mapping);
  if (by_number != index_.end()) {
    const auto found = by_number->second.find(record.number);
    // A retired version is not found, or another of its number is.
    if (found != by_number->second.end() && found->second == version) {
      by_number->second.erase(found);
      if (by_number->second.empty()) index_.erase(by_number);
    }
  }
  bytes_ -= (*version)->memory_bytes();
  return recent_.erase(version);
}

void LiveVersions::Retire(absl::string_view mapping, int64_t number) {
  const auto by_number = index_.find(mapping);
  if (by_number == index_.end()) return;
  const auto found = by_number->second.find(number);
  if (found == by_number->second.end()) return;
  const Recent::iterator version = found->second;
  by_number->second.erase(found);
  if (by_number->second.empty()) index_.erase(by_number);
  if (IsHeld(*version)) {
    recent_.splice(recent_.end(), recent_, version);
  } else {
    Drop(version);
  }
}

void LiveVersions::RetireAll(absl::string_view mapping) {
  for (auto found = index_.find(mapping); found != index_.end(); found = index_.find(mapping)) {
    Retire(mapping, found->second.begin()->first);
  }
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
