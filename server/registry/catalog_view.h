// The meaning of names, in memory: every mapping's versions and aliases at one revision of the
// catalog. The server looks up names in the view, not in the store. The view follows the store.
//
// Guarantees: the view moves from revision to revision, with all names at once, and never back: no
// answer shows a change of a later revision than revision() returns afterwards. After CatchUp has
// returned OK, every answer includes all changes that were acknowledged before that call of
// CatchUp.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_
#define PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/thread/mutex.h"
#include "server/registry/reference.h"
#include "server/store/records.h"

namespace phimap {

class CatalogView {
 public:
  // Called for each mapping that changed, one at a time: after the view has moved to the new
  // revision, and before CatchUp returns. The listener must not call CatchUp.
  using Listener = std::function<void(const MappingNames& before, const MappingNames& now)>;

  // Returns a catalog's changes of names since a revision.
  using Source = absl::FunctionRef<absl::StatusOr<NameChanges>(const Revision& since)>;

  // The view knows nothing before the first CatchUp.
  explicit CatalogView(Listener changed) : changed_(std::move(changed)) {}

  // Asks `source` for changes and applies them. Blocks as long as `source` does; concurrent calls
  // do not wait for each other. Errors: those of `source`; nothing is changed then.
  absl::Status CatchUp(Source source) ABSL_LOCKS_EXCLUDED(applying_, mutex_);

  // Returns the number of the version that `reference` means. Returns 0 if there is no such
  // version, or if several digests begin with the digits of `reference`. Never waits for the store.
  int64_t Find(const Reference& reference) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the names of the aliases that point to a version, sorted.
  std::vector<std::string> AliasesOf(absl::string_view mapping, int64_t number) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  Revision revision() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Copies all names and their revision.
  void CopyTo(Revision& revision, std::vector<MappingNames>& mappings) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the id of a revision that the view has passed, "" for one that it does not remember. It
  // remembers some thousand.
  std::string IdOfPassed(int64_t number) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Number of times that the catalog turned out to have another history than the view's.
  int64_t breaks() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The known names of a mapping.
  struct Known {
    MappingNames names;
    // Indices into names.versions, sorted by digest. Of equal digests, the newest version comes
    // first.
    std::vector<size_t> by_digest;
  };
  using Names = absl::flat_hash_map<std::string, Known>;

  static Known Index(MappingNames names);
  static int64_t VersionOf(const Known& known, const Reference& reference);
  static int64_t VersionOfDigest(const Known& known, absl::string_view digest);

  // A revision of the view, and which of its histories that belongs to: they count from 0.
  struct Place {
    Revision revision;
    int64_t history = 0;
  };
  Place place() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Applies `changes`, the catalog's answer for `since`. Returns false, without effect, if the view
  // has changed to another history meanwhile, or would now; the caller must then ask again.
  bool Apply(const Place& since, NameChanges changes) ABSL_LOCKS_EXCLUDED(applying_, mutex_);
  // Adds the known mappings that no longer exist to `changes`. REQUIRES: `changes` lists all
  // existing mappings.
  void AddGone(NameChanges& changes) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces the names of the mappings in `now`, returns the previous ones in the same order, and
  // moves to the revision of `changes`. Readers wait meanwhile, some tenths of a microsecond for
  // each mapping.
  std::vector<MappingNames> MoveTo(const NameChanges& changes, std::vector<Known> now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Listener changed_;
  // Held while changes are applied, so that they are applied one at a time and in the order of
  // revisions.
  Mutex applying_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  Revision revision_ ABSL_GUARDED_BY(mutex_);
  int64_t history_ ABSL_GUARDED_BY(mutex_) = 0;
  // Ascending, at most kPassedRevisions.
  std::deque<Revision> passed_ ABSL_GUARDED_BY(mutex_);
  Names names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_CATALOG_VIEW_H_
