#include "server/registry/alias_warming.h"

#include <algorithm>
#include <string>
#include <utility>

namespace phimap {
namespace {

// Number of mappings listed at a time.
constexpr int kListedMappings = 1000;

}  // namespace

std::vector<int64_t> AliasedVersions(const MappingNames& names) {
  std::vector<int64_t> numbers;
  for (const AliasTarget& alias : names.aliases) numbers.push_back(alias.version);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

WarmQueue::MoveTimes AliasMoveTimes(Store& store) {
  WarmQueue::MoveTimes times;
  std::string after;
  while (true) {
    const absl::StatusOr<std::vector<MappingRecord>> mappings =
        store.ListMappings(after, kListedMappings);
    if (!mappings.ok() || mappings->empty()) return times;
    for (const MappingRecord& mapping : *mappings) {
      for (const AliasRecord& alias : mapping.aliases) {
        absl::Time& time = times.try_emplace({mapping.name, alias.version}).first->second;
        time = std::max(time, alias.move_time);
      }
    }
    after = mappings->back().name;
  }
}

bool AliasWarming::Start(std::vector<VersionName> missing) {
  if (state_ != State::kNotYet) return false;
  state_ = State::kOn;
  for (VersionName& version : missing) line_.PushBack(std::move(version));
  return true;
}

void AliasWarming::Stop() {
  state_ = State::kStopped;
  line_.Clear();
}

void AliasWarming::NamesChanged(const MappingNames& before, const MappingNames& now,
                                const LiveVersions& live) {
  for (const int64_t number : AliasedVersions(before)) {
    if (!live.IsPinned(now.mapping, number)) line_.Remove(now.mapping, number);
  }
  if (!is_on()) return;
  for (const AliasTarget& alias : now.aliases) {
    const bool stands = std::any_of(before.aliases.begin(), before.aliases.end(), [&](auto& old) {
      return old.alias == alias.alias && old.version == alias.version;
    });
    if (stands || live.Contains(now.mapping, alias.version)) continue;
    line_.PushFront({now.mapping, alias.version});
  }
}

std::optional<VersionName> AliasWarming::Take(const LiveVersions& live) {
  loading_.reset();
  while (std::optional<VersionName> version = line_.Take()) {
    if (live.Contains(version->mapping, version->number)) continue;
    loading_ = std::move(version);
    break;
  }
  return loading_;
}

void AliasWarming::EndLoad(const VersionName& version) {
  if (loading_ == version) loading_.reset();
}

}  // namespace phimap
