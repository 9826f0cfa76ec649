// Decides which of the versions that aliases point to are loaded next in the background, and counts
// those that remain.
#ifndef PHIMAP_SERVER_REGISTRY_ALIAS_WARMING_H_
#define PHIMAP_SERVER_REGISTRY_ALIAS_WARMING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/registry/catalog_view.h"
#include "server/registry/live_versions.h"
#include "server/registry/warm_queue.h"
#include "server/store/store.h"

namespace phimap {

// Returns the numbers of the versions that aliases point to, ascending.
std::vector<int64_t> AliasedVersions(const MappingNames& names);

// Returns the time at which an alias last moved to each version. Incomplete if the store returns an
// error. Blocking.
WarmQueue::MoveTimes AliasMoveTimes(Store& store);

// Versions that wait to be loaded, and the one that is being loaded. The caller runs at most one
// loading task at a time while any version waits. Not thread-safe; the registry guards it.
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

#endif  // PHIMAP_SERVER_REGISTRY_ALIAS_WARMING_H_
