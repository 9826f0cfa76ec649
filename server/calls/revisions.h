// Lets callers see their own changes on every server: a call that changes names is answered with
// the revision that contains the change, as the trailing metadata "phimap-revision", and a call
// with that revision as its metadata "phimap-min-revision" begins when this server knows it. Such a
// call is answered with a revision too: it may have seen later changes, and the client's next
// server must not show an older state.
#ifndef PHIMAP_SERVER_CALLS_REVISIONS_H_
#define PHIMAP_SERVER_CALLS_REVISIONS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

inline constexpr absl::string_view kRevisionKey = "phimap-revision";
inline constexpr absl::string_view kMinRevisionKey = "phimap-min-revision";
// Time for which a call waits for its revision.
inline constexpr absl::Duration kRevisionTime = absl::Seconds(1);

// Thread-safe.
class Revisions {
 public:
  virtual ~Revisions() = default;

  // The revision known here, as metadata. Never waits.
  virtual std::string Known() const = 0;
  // Like Known; "" when the last change made here may not be known here yet.
  virtual std::string KnownWithOwnChanges() const = 0;
  // Whether `revision`, from metadata, is known here. Never waits. INVALID_ARGUMENT
  // (REVISION_INVALID).
  virtual absl::StatusOr<bool> Knows(absl::string_view revision) const = 0;
  // Finds out whether the revision is known, and calls `done` once, later, on another thread: OK
  // when it is known. Errors: FAILED_PRECONDITION (REVISION_HISTORY_MISMATCH: a failover or a
  // restored backup happened since), UNAVAILABLE (REVISION_NOT_REACHED, and those of the store).
  // REQUIRES: Knows(revision) is false.
  virtual void Find(absl::string_view revision, std::function<void(absl::Status)> done) = 0;
};

// Whether an answer of `method`, "package.Service/Method", tells its revision: it changed names.
bool ChangesNames(absl::string_view method);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_REVISIONS_H_
