// The versions in memory, or parts of them, limited in bytes. The least recently used versions are
// unloaded first, and pinned versions (those that aliases point to) after all others. Versions in
// use stay.
//
// Not thread-safe; the registry guards it.
#ifndef PHIMAP_SERVER_REGISTRY_LIVE_VERSIONS_H_
#define PHIMAP_SERVER_REGISTRY_LIVE_VERSIONS_H_

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/registry/catalog_view.h"
#include "server/registry/version_handle.h"
#include "server/store/records.h"
#include "server/store/store.h"

namespace phimap {

// Rule for which unused versions may be unloaded.
enum class Eviction { kUnpinned, kPinnedLast };

class LiveVersions {
 public:
  explicit LiveVersions(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the version and makes it the most recently used. Returns null if it is not loaded.
  std::shared_ptr<const LiveVersion> Find(absl::string_view mapping, int64_t number,
                                          LivePart part = LivePart::kFeatures);
  // Finds a version without making it the most recently used.
  std::shared_ptr<const LiveVersion> Peek(absl::string_view mapping, int64_t number,
                                          LivePart part = LivePart::kFeatures) const;
  // Whether the version's features are live. Does not count as a use.
  bool Contains(absl::string_view mapping, int64_t number) const {
    return Peek(mapping, number) != nullptr;
  }
  // All parts of versions that are live, by name, number and part. Does not count as a use.
  std::vector<std::shared_ptr<const LiveVersion>> All() const;
  // Unloads unused versions, the least recently used first, until `bytes` more fit. Pinned versions
  // are unloaded only if no other version is left to unload and `eviction` permits it. Returns
  // false, and unloads nothing, if `bytes` cannot fit: because `bytes` alone exceeds the limit, or
  // because versions that are in use or pinned must stay.
  bool FreeCapacity(int64_t bytes, Eviction eviction = Eviction::kPinnedLast);
  // Adds a version. REQUIRES: FreeCapacity(version->memory_bytes()) returned true, and no such part
  // of a version of the same mapping with the same number is loaded. If the limit was lowered
  // since, unloads others.
  void Insert(std::shared_ptr<const LiveVersion> version);
  // Changes the limit, and unloads unused versions until it is kept, pinned ones last. Versions in
  // use stay, even if they take more.
  void SetMaxBytes(int64_t max_bytes);
  // Makes all parts of the version that are loaded impossible to find. If a part is in use, its
  // memory still counts, and it is the first to be unloaded once it is unused.
  void Retire(absl::string_view mapping, int64_t number);

  // Pins these versions of the mapping, loaded or not, and unpins all its other versions. REQUIRES:
  // `numbers` ascend.
  void Pin(absl::string_view mapping, std::vector<int64_t> numbers);
  bool IsPinned(absl::string_view mapping, int64_t number) const;
  // Returns the pinned versions that are not loaded.
  std::vector<VersionName> MissingPinned() const;
  // Number of pinned versions, and number of those whose features are loaded.
  int64_t pinned() const { return pinned_count_; }
  int64_t pinned_here() const { return pinned_here_; }

  int64_t count() const { return static_cast<int64_t>(recent_.size()); }
  int64_t bytes() const { return bytes_; }
  int64_t max_bytes() const { return max_bytes_; }
  int64_t evictions() const { return evictions_; }

 private:
  using Recent = std::list<std::shared_ptr<const LiveVersion>>;
  // The number of a version, and a part of it.
  using PartKey = std::pair<int64_t, LivePart>;

  // Returns how many of `numbers` are loaded.
  int64_t CountHere(absl::string_view mapping, const std::vector<int64_t>& numbers) const;
  // Unloads pinned or unpinned versions that are not in use until `bytes` more fit or none is left.
  void DropUntilFits(int64_t bytes, bool pinned);
  // Unloads unused versions until the limit is kept or none is left.
  void Trim();
  // Makes the version impossible to find.
  void Unindex(Recent::iterator version);
  // Releases the version, whether it can be found or not.
  Recent::iterator Drop(Recent::iterator version);

  int64_t max_bytes_;
  int64_t bytes_ = 0;
  int64_t evictions_ = 0;
  // Sorted by last use, the most recent first.
  Recent recent_;
  absl::flat_hash_map<std::string, absl::flat_hash_map<PartKey, Recent::iterator>> index_;
  // The numbers ascend. Mappings without pinned versions are absent.
  absl::flat_hash_map<std::string, std::vector<int64_t>> pinned_;
  int64_t pinned_count_ = 0;
  int64_t pinned_here_ = 0;
};

// The queue of versions that aliases point to and that are still to be loaded in the background.
//
// Not thread-safe; the registry guards it.
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

// Returns the numbers of the versions that aliases point to, ascending.
std::vector<int64_t> AliasedVersions(const MappingNames& names);

// Returns the time at which an alias last moved to each version. Incomplete if the store returns an
// error. Blocking.
WarmQueue::MoveTimes AliasMoveTimes(Store& store);

// Decides which of the versions that aliases point to are loaded next in the background, and counts
// those that remain. Versions that wait to be loaded, and the one that is being loaded. The caller
// runs at most one loading task at a time while any version waits. Not thread-safe; the registry
// guards it.
class AliasWarming {
 public:
  // Starts warming with the versions `missing`. Returns false, and does nothing, if warming was
  // started before.
  bool Start(std::vector<VersionName> missing);
  // Skips the remaining versions, for good.
  void Stop();
  bool is_on() const { return state_ == State::kOn; }
  bool is_stopped() const { return state_ == State::kStopped; }

  // Updates the queue after names of a mapping have changed. Removes versions that no alias points
  // to any longer, and puts versions that an alias has moved to at the front. REQUIRES: `live`
  // already pins the new versions.
  void NamesChanged(const MappingNames& before, const MappingNames& now, const LiveVersions& live);
  // Returns the next version that is not live, and marks it as being loaded. Empty if all are live.
  std::optional<VersionName> Take(const LiveVersions& live);
  // Notes that a version became live, whoever asked for it.
  void NoteLive(const VersionName& version) { line_.Remove(version.mapping, version.number); }
  // Notes that a load has ended. No-op for a version that was not returned by Take.
  void EndLoad(const VersionName& version);
  void Sort(const WarmQueue::MoveTimes& times) { line_.Sort(times); }

  // Whether versions wait but the loader has no task for them. SetTask records whether it has one.
  bool needs_task() const { return !has_task_ && !line_.empty(); }
  void SetTask(bool has_task) { has_task_ = has_task; }

  // Number of versions that are still to be loaded or skipped.
  int64_t count() const { return line_.size() + (loading_.has_value() ? 1 : 0); }

 private:
  enum class State { kNotYet, kOn, kStopped };

  State state_ = State::kNotYet;
  WarmQueue line_;
  bool has_task_ = false;
  std::optional<VersionName> loading_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_LIVE_VERSIONS_H_
