// The versions in memory, limited in bytes. The least recently used versions are unloaded first,
// and pinned versions (those that aliases point to) after all others. Versions in use stay.
//
// Not thread-safe; the registry guards it.
#ifndef PHIMAP_SERVER_REGISTRY_LIVE_VERSIONS_H_
#define PHIMAP_SERVER_REGISTRY_LIVE_VERSIONS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/registry/version_handle.h"
#include "server/store/records.h"

namespace phimap {

// Rule for which unused versions may be unloaded.
enum class Eviction { kUnpinned, kPinnedLast };

class LiveVersions {
 public:
  explicit LiveVersions(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the version and makes it the most recently used. Returns null if it is not loaded.
  std::shared_ptr<const LiveVersion> Find(absl::string_view mapping, int64_t number);
  // Finds a version without making it the most recently used.
  std::shared_ptr<const LiveVersion> Peek(absl::string_view mapping, int64_t number) const;
  // Whether the version is live. Does not count as a use.
  bool Contains(absl::string_view mapping, int64_t number) const;
  // All live versions, by name and number. Does not count as a use.
  std::vector<std::shared_ptr<const LiveVersion>> All() const;
  // Unloads unused versions, the least recently used first, until `bytes` more fit. Pinned versions
  // are unloaded only if no other version is left to unload and `eviction` permits it. Returns
  // false, and unloads nothing, if `bytes` cannot fit: because `bytes` alone exceeds the limit, or
  // because versions that are in use or pinned must stay.
  bool FreeCapacity(int64_t bytes, Eviction eviction = Eviction::kPinnedLast);
  // Adds a version. REQUIRES: FreeCapacity(version->memory_bytes()) returned true, and no version
  // of the same mapping with the same number is loaded.
  void Insert(std::shared_ptr<const LiveVersion> version);
  // Makes the version, if it is loaded, impossible to find. If the version is in use, its memory
  // still counts, and the version is the first to be unloaded once it is unused.
  void Retire(absl::string_view mapping, int64_t number);

  // Pins these versions of the mapping, loaded or not, and unpins all its other versions. REQUIRES:
  // `numbers` ascend.
  void Pin(absl::string_view mapping, std::vector<int64_t> numbers);
  bool IsPinned(absl::string_view mapping, int64_t number) const;
  // Returns the pinned versions that are not loaded.
  std::vector<VersionName> MissingPinned() const;
  // Number of pinned versions, and number of those that are loaded.
  int64_t pinned() const { return pinned_count_; }
  int64_t pinned_here() const { return pinned_here_; }

  int64_t count() const { return static_cast<int64_t>(recent_.size()); }
  int64_t bytes() const { return bytes_; }
  int64_t max_bytes() const { return max_bytes_; }
  int64_t evictions() const { return evictions_; }

 private:
  using Recent = std::list<std::shared_ptr<const LiveVersion>>;

  // Returns how many of `numbers` are loaded.
  int64_t CountHere(absl::string_view mapping, const std::vector<int64_t>& numbers) const;
  // Unloads pinned or unpinned versions that are not in use until `bytes` more fit or none is left.
  void DropUntilFits(int64_t bytes, bool pinned);
  // Makes the version impossible to find.
  void Unindex(Recent::iterator version);
  // Releases the version, whether it can be found or not.
  Recent::iterator Drop(Recent::iterator version);

  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  int64_t evictions_ = 0;
  // Sorted by last use, the most recent first.
  Recent recent_;
  absl::flat_hash_map<std::string, absl::flat_hash_map<int64_t, Recent::iterator>> index_;
  // The numbers ascend. Mappings without pinned versions are absent.
  absl::flat_hash_map<std::string, std::vector<int64_t>> pinned_;
  int64_t pinned_count_ = 0;
  int64_t pinned_here_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_LIVE_VERSIONS_H_
