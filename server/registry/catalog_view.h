// What names mean, in memory: every mapping's versions and aliases, as of one revision of the
// catalog. Whoever serves asks the view and not the store, and the view follows the store.
//
// Guarantees: it goes from revision to revision and never back. After CatchUp has returned OK,
// every change that was acknowledged before its call is seen by every question.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_
#define PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/registry/reference.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

class CatalogView {
 public:
  // Told of each mapping that changed, before the next, and before CatchUp returns; under no lock
  // but that of CatchUp, which it must not call.
  using Listener = std::function<void(const MappingNames& before, const MappingNames& now)>;

  // `store` outlives the view. Knows nothing before the first CatchUp.
  CatalogView(Store& store, Listener changed) : store_(store), changed_(std::move(changed)) {}

  // Asks the store what changed, and sees it from then on. Blocking. Errors: those of the store;
  // then nothing changes.
  absl::Status CatchUp() ABSL_LOCKS_EXCLUDED(catching_up_, mutex_);

  // The number of the version that `reference` means; 0 if there is none. Never waits for the
  // store.
  int64_t Find(const Reference& reference) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The aliases that point at a version, by name.
  std::vector<std::string> AliasesOf(absl::string_view mapping, int64_t number) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  Revision revision() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Names = absl::flat_hash_map<std::string, MappingNames>;

  // Adds to `changes` that mappings are gone which the whole does not have.
  void AddGone(NameChanges& changes) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts `now` in the place of what was known of its mapping, which is returned.
  MappingNames Replace(const MappingNames& now) ABSL_LOCKS_EXCLUDED(mutex_);

  Store& store_;
  const Listener changed_;
  // One at a time: what is seen is in the order of revisions.
  Mutex catching_up_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  Revision revision_ ABSL_GUARDED_BY(mutex_);
  Names names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_
