// Lets callers see their own changes on every server. The answer to a call that changes names
// reports the revision that contains the change, as the trailing metadata "phimap-revision". A call
// that sends this revision as its metadata "phimap-min-revision" begins only when the server knows
// the revision. Such a call is answered with a revision too: it may have seen later changes, and
// the client's next server must not show an older state.
#ifndef PHIMAP_SERVER_RPC_REVISIONS_H_
#define PHIMAP_SERVER_RPC_REVISIONS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

inline constexpr absl::string_view kRevisionKey = "phimap-revision";
inline constexpr absl::string_view kMinRevisionKey = "phimap-min-revision";
// Maximum time for which a call waits for its revision.
inline constexpr absl::Duration kRevisionTime = absl::Seconds(1);

// Thread-safe.
class Revisions {
 public:
  virtual ~Revisions() = default;

  // Returns the revision known to this server, as metadata. Never waits.
  virtual std::string Known() const = 0;
  // Like Known, but returns "" if the last change made by this server may not be known here yet.
  virtual std::string KnownWithOwnChanges() const = 0;
  // Returns whether this server knows `revision`, which came as metadata. Never waits.
  // INVALID_ARGUMENT (REVISION_INVALID) if it is malformed.
  virtual absl::StatusOr<bool> Knows(absl::string_view revision) const = 0;
  // Finds out whether this server can learn the revision. Calls `done` once, later, on another
  // thread: with OK when this server knows the revision, and otherwise with an error. Errors:
  // FAILED_PRECONDITION (REVISION_HISTORY_MISMATCH: a failover or a restored backup happened
  // since), UNAVAILABLE (REVISION_NOT_REACHED, and those of the store). REQUIRES: Knows(revision)
  // is false.
  virtual void Find(absl::string_view revision, std::function<void(absl::Status)> done) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_REVISIONS_H_
