// Answers callers' questions about revisions from a registry's names.
#ifndef PHIMAP_SERVER_REGISTRY_REVISION_FINDER_H_
#define PHIMAP_SERVER_REGISTRY_REVISION_FINDER_H_

#include <functional>
#include <string>
#include <vector>

#include "core/thread/mutex.h"
#include "server/registry/version_registry.h"
#include "server/rpc/revisions.h"
#include "server/schedule/task_pool.h"
#include "server/store/records.h"
#include "server/store/store.h"

namespace phimap {

// Returns "ID:NUMBER".
std::string RevisionText(const Revision& revision);
// Parses the result of RevisionText. INVALID_ARGUMENT (REVISION_INVALID) for any other text.
absl::StatusOr<Revision> ParseRevision(absl::string_view text);

class RevisionFinder final : public Revisions {
 public:
  // All arguments must outlive the finder.
  RevisionFinder(VersionRegistry& registry, Store& store, TaskPool& store_pool)
      : registry_(registry), store_(store), store_pool_(store_pool) {}
  // Waits until all callers of Find are answered. REQUIRES: Find is not called any more.
  ~RevisionFinder() override;

  std::string Known() const override { return RevisionText(registry_.revision()); }
  std::string KnownWithOwnChanges() const override;
  absl::StatusOr<bool> Knows(absl::string_view revision) const override;
  // Sends one query at a time to the store, however many callers wait.
  void Find(absl::string_view revision, std::function<void(absl::Status)> done) override;

 private:
  struct Asker {
    Revision wanted;
    std::function<void(absl::Status)> done;
  };

  // What the registry alone can say about a revision.
  enum class Place { kPassed, kAhead, kOfAnotherHistory, kForgotten };
  Place PlaceOf(const Revision& wanted) const;

  // Answers callers on a store thread until none is left.
  void Ask();
  // Judges a revision after the registry has caught up. May ask the store.
  absl::Status Judge(const Revision& wanted) const;

  VersionRegistry& registry_;
  Store& store_;
  TaskPool& store_pool_;
  Mutex mutex_;
  std::vector<Asker> askers_ ABSL_GUARDED_BY(mutex_);
  CondVar idle_;
  bool asking_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_REVISION_FINDER_H_
