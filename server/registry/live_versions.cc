#include "server/registry/live_versions.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/status/check.h"

namespace phimap {

namespace {

// Handles are copied only from other handles or from this guarded map. So a version with a single
// owner is not in use.
bool IsHeld(const std::shared_ptr<const LiveVersion>& version) { return version.use_count() > 1; }

}  // namespace

std::shared_ptr<const LiveVersion> LiveVersions::Find(absl::string_view mapping, int64_t number,
                                                      LivePart part) {
  const auto parts = index_.find(mapping);
  if (parts == index_.end()) return nullptr;
  const auto found = parts->second.find({number, part});
  if (found == parts->second.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return *found->second;
}

std::shared_ptr<const LiveVersion> LiveVersions::Peek(absl::string_view mapping, int64_t number,
                                                      LivePart part) const {
  const auto parts = index_.find(mapping);
  if (parts == index_.end()) return nullptr;
  const auto found = parts->second.find({number, part});
  return found == parts->second.end() ? nullptr : *found->second;
}

std::vector<std::shared_ptr<const LiveVersion>> LiveVersions::All() const {
  std::vector<std::shared_ptr<const LiveVersion>> all;
  for (const auto& [mapping, parts] : index_) {
    for (const auto& [key, version] : parts) all.push_back(*version);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a->record.mapping, a->record.number, a->part) <
           std::tie(b->record.mapping, b->record.number, b->part);
  });
  return all;
}

bool LiveVersions::FreeCapacity(int64_t bytes, Eviction eviction) {
  // Checks first whether the bytes can fit at all, so that a version that cannot fit does not empty
  // the cache.
  int64_t staying = 0;
  for (const auto& version : recent_) {
    const bool stays =
        IsHeld(version) || (eviction == Eviction::kUnpinned &&
                            IsPinned(version->record.mapping, version->record.number));
    staying += stays ? version->memory_bytes() : 0;
  }
  if (bytes > max_bytes_ - staying) return false;
  DropUntilFits(bytes, /*pinned=*/false);
  if (eviction == Eviction::kPinnedLast) DropUntilFits(bytes, /*pinned=*/true);
  return bytes <= max_bytes_ - bytes_;
}

void LiveVersions::DropUntilFits(int64_t bytes, bool pinned) {
  auto candidate = recent_.end();
  while (bytes > max_bytes_ - bytes_ && candidate != recent_.begin()) {
    --candidate;
    const VersionRecord& record = (*candidate)->record;
    if (IsHeld(*candidate) || IsPinned(record.mapping, record.number) != pinned) continue;
    ++evictions_;
    candidate = Drop(candidate);
  }
}

void LiveVersions::Unindex(Recent::iterator version) {
  const VersionRecord& record = (*version)->record;
  const LivePart part = (*version)->part;
  const auto parts = index_.find(record.mapping);
  if (parts == index_.end()) return;
  const auto found = parts->second.find({record.number, part});
  // For a retired version, the index has no entry, or it has an entry for another version with the
  // same number.
  if (found == parts->second.end() || found->second != version) return;
  parts->second.erase(found);
  if (parts->second.empty()) index_.erase(parts);
  if (part == LivePart::kFeatures && IsPinned(record.mapping, record.number)) --pinned_here_;
}

LiveVersions::Recent::iterator LiveVersions::Drop(Recent::iterator version) {
  Unindex(version);
  bytes_ -= (*version)->memory_bytes();
  return recent_.erase(version);
}

void LiveVersions::Retire(absl::string_view mapping, int64_t number) {
  for (const LivePart part : kLiveParts) {
    const auto parts = index_.find(mapping);
    if (parts == index_.end()) return;
    const auto found = parts->second.find({number, part});
    if (found == parts->second.end()) continue;
    const Recent::iterator version = found->second;
    Unindex(version);
    if (IsHeld(*version)) {
      recent_.splice(recent_.end(), recent_, version);
    } else {
      Drop(version);
    }
  }
}

void LiveVersions::Pin(absl::string_view mapping, std::vector<int64_t> numbers) {
  if (const auto before = pinned_.find(mapping); before != pinned_.end()) {
    pinned_count_ -= static_cast<int64_t>(before->second.size());
    pinned_here_ -= CountHere(mapping, before->second);
    pinned_.erase(before);
  }
  if (numbers.empty()) return;
  pinned_count_ += static_cast<int64_t>(numbers.size());
  pinned_here_ += CountHere(mapping, numbers);
  pinned_.emplace(mapping, std::move(numbers));
}

int64_t LiveVersions::CountHere(absl::string_view mapping,
                                const std::vector<int64_t>& numbers) const {
  return std::count_if(numbers.begin(), numbers.end(),
                       [&](int64_t number) { return Contains(mapping, number); });
}

bool LiveVersions::IsPinned(absl::string_view mapping, int64_t number) const {
  const auto numbers = pinned_.find(mapping);
  return numbers != pinned_.end() &&
         std::binary_search(numbers->second.begin(), numbers->second.end(), number);
}

std::vector<VersionName> LiveVersions::MissingPinned() const {
  std::vector<VersionName> missing;
  for (const auto& [mapping, numbers] : pinned_) {
    for (const int64_t number : numbers) {
      if (!Contains(mapping, number)) missing.push_back({mapping, number});
    }
  }
  std::sort(missing.begin(), missing.end());
  return missing;
}

void LiveVersions::Insert(std::shared_ptr<const LiveVersion> version) {
  bytes_ += version->memory_bytes();
  const VersionRecord& record = version->record;
  const PartKey key(record.number, version->part);
  if (key.second == LivePart::kFeatures && IsPinned(record.mapping, record.number)) {
    ++pinned_here_;
  }
  auto& slot = index_[record.mapping];
  recent_.push_front(std::move(version));
  PHIMAP_CHECK(slot.emplace(key, recent_.begin()).second);
  Trim();
}

void LiveVersions::SetMaxBytes(int64_t max_bytes) {
  max_bytes_ = max_bytes;
  Trim();
}

void LiveVersions::Trim() {
  DropUntilFits(0, /*pinned=*/false);
  DropUntilFits(0, /*pinned=*/true);
}

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
