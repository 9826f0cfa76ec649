// Meaning of names, in memory: every mapping's versions and aliases, as of one revision of the
// catalog. Servers ask the view and not the store, and the view follows the store.
//
// Guarantees: it moves from revision to revision and never back. After CatchUp has returned OK,
// every answer includes each change that was acknowledged before the call of CatchUp.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_
#define PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/registry/reference.h"
#include "server/store/records.h"
#include "server/sync/mutex.h"

namespace phimap {

class CatalogView {
 public:
  // Told of each mapping that changed, before the next, and before CatchUp returns; one at a time.
  // The listener must not call CatchUp.
  using Listener = std::function<void(const MappingNames& before, const MappingNames& now)>;

  // Asks a catalog for changes of names since a revision.
  using Source = absl::FunctionRef<absl::StatusOr<NameChanges>(const Revision& since)>;

  // Knows nothing before the first CatchUp.
  explicit CatalogView(Listener changed) : changed_(std::move(changed)) {}

  // Asks `source` for changes and applies them. Blocks as long as `source` does; concurrent calls
  // do not wait for each other. Errors: those of `source`; nothing is changed then.
  absl::Status CatchUp(Source source) ABSL_LOCKS_EXCLUDED(applying_, mutex_);

  // The number of the version that `reference` means; 0 if there is none, or if several digests
  // begin with its digits. Never waits for the store.
  int64_t Find(const Reference& reference) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The aliases that point at a version, by name.
  std::vector<std::string> AliasesOf(absl::string_view mapping, int64_t number) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  Revision revision() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Known names of a mapping.
  struct Known {
    MappingNames names;
    // Positions in names.versions, by digest, and of equal digests the newest first.
    std::vector<size_t> by_digest;
  };
  using Names = absl::flat_hash_map<std::string, Known>;

  static Known Index(MappingNames names);
  static int64_t VersionOf(const Known& known, const Reference& reference);
  static int64_t VersionOfDigest(const Known& known, absl::string_view digest);

  // Sees `changes`, which were asked for `since`. Applies `changes`, which were requested since
  // `since`. False, without effect, if their history differs from the present one: ask again.
  bool Apply(const Revision& since, NameChanges changes) ABSL_LOCKS_EXCLUDED(applying_, mutex_);
  // Adds to `changes` the mappings that are gone, because the complete list lacks them.
  void AddGone(NameChanges& changes) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces the names of a mapping by `now` and returns the previous ones.
  MappingNames Replace(const MappingNames& now) ABSL_LOCKS_EXCLUDED(mutex_);

  const Listener changed_;
  // Held one at a time, so that changes are seen in the order of revisions.
  Mutex applying_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  Revision revision_ ABSL_GUARDED_BY(mutex_);
  Names names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_
