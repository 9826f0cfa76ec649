// The versions in memory, bounded in bytes: the least recently used make room, those that somebody
// holds stay.
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

namespace phimap {

class LiveVersions {
 public:
  explicit LiveVersions(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // The version, which becomes the most recently used; null if it is not here.
  std::shared_ptr<const LiveVersion> Find(absl::string_view mapping, int64_t number);
  // All that can be found, by name and number; nothing is used by this.
  std::vector<std::shared_ptr<const LiveVersion>> All() const;
  // Drops versions that nobody holds, longest unused first, until `bytes` more fit. False, and
  // nothing is dropped, if they cannot: the others are held, or `bytes` alone is over the limit.
  bool MakeRoom(int64_t bytes);
  // REQUIRES: MakeRoom(version->memory_bytes()) and no such version is here.
  void Insert(std::shared_ptr<const LiveVersion> version);
  // The version, if it is here, is not found any more. As long as somebody holds it, it still
  // counts; then it is the first to make room.
  void Retire(absl::string_view mapping, int64_t number);
  // All versions of a mapping likewise.
  void RetireAll(absl::string_view mapping);

  int64_t count() const { return static_cast<int64_t>(recent_.size()); }
  int64_t bytes() const { return bytes_; }
  int64_t max_bytes() const { return max_bytes_; }
  int64_t evictions() const { return evictions_; }

 private:
  using Recent = std::list<std::shared_ptr<const LiveVersion>>;

  // Lets go of it, found or not.
  Recent::iterator Drop(Recent::iterator version);

  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  int64_t evictions_ = 0;
  // Most recently used first.
  Recent recent_;
  absl::flat_hash_map<std::string, absl::flat_hash_map<int64_t, Recent::iterator>> index_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_LIVE_VERSIONS_H_
