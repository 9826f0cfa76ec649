// Loading in the background what aliases name: which versions are next, and how many remain.
#ifndef PHIMAP_SERVER_REGISTRY_ALIAS_WARMING_H_
#define PHIMAP_SERVER_REGISTRY_ALIAS_WARMING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/registry/catalog_view.h"
#include "server/registry/live_versions.h"
#include "server/registry/warm_line.h"
#include "server/store/store.h"

namespace phimap {

// The versions that aliases name, ascending.
std::vector<int64_t> AliasedVersions(const MappingNames& names);

// When each alias was moved, as the store says; empty for what it does not answer. Blocking.
WarmLine::MoveTimes AliasMoveTimes(Store& store);

// Versions that wait to be loaded, and the one that is being loaded. The caller runs at most one
// loading task at a time while any version waits. Not thread-safe; the registry guards it.
class AliasWarming {
 public:
  // Begins with these versions. Returns false, and does nothing, if it began before.
  bool Start(std::vector<VersionName> missing);
  // Passes over what is left, for good.
  void Stop();
  bool is_on() const { return state_ == State::kOn; }
  bool is_stopped() const { return state_ == State::kStopped; }

  // To be called when names of a mapping have changed; `live` already pins the new versions.
  // Removes versions that no alias names any longer, and puts the versions that an alias moved to
  // first.
  void NamesChanged(const MappingNames& before, const MappingNames& now, const LiveVersions& live);
  // Returns the next version that is not live, and marks it as being loaded. Empty if all are live.
  std::optional<VersionName> Take(const LiveVersions& live);
  // A version became live, whoever asked for it.
  void NoteLive(const VersionName& version) { line_.Remove(version.mapping, version.number); }
  // The load of a version ended, if it was taken from here.
  void EndLoad(const VersionName& version);
  void Sort(const WarmLine::MoveTimes& times) { line_.Sort(times); }

  // Whether the loader has no task for the line and needs one; and what became of giving it one.
  bool needs_task() const { return !has_task_ && !line_.empty(); }
  void SetTask(bool has_task) { has_task_ = has_task; }

  // Versions that are still to be loaded or passed over.
  int64_t count() const { return line_.size() + (loading_.has_value() ? 1 : 0); }

 private:
  enum class State { kNotYet, kOn, kStopped };

  State state_ = State::kNotYet;
  WarmLine line_;
  bool has_task_ = false;
  std::optional<VersionName> loading_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_ALIAS_WARMING_H_
