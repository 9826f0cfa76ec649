// Ownership of builds. While a build runs, its server has a claim to (mapping, build_id) and renews
// it; no other server builds under that id meanwhile.
//
// A claim is a lease: when it was not renewed in time, by the clock of the store, another server
// may take it over. That alone ends nothing: only the claim's epoch counts, which every taking
// raises, and which Store::Publish compares in the transaction that makes a version visible. A
// server that was stopped, or cut off, for longer than its lease therefore publishes nothing if
// another one took its place, and continues if none did.
//
// A claim ends with the transaction that records the build's end, or with Release. Claims are not
// names: they do not change a revision.
//
// Blocking: every call may wait for a disk, a network or another writer.
// Thread-safety: all methods may be called from any thread.
// Errors: those of the database (sql_database.h).
#ifndef PHIMAP_SERVER_STORE_BUILD_CLAIMS_H_
#define PHIMAP_SERVER_STORE_BUILD_CLAIMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/store/records.h"

namespace phimap {

// Progress of a claimed build, as its server last reported.
struct ClaimedProgress {
  // A BuildState.
  int64_t state = 0;
  int64_t rows_received = 0;
  std::string phase = {};
  double fraction = 0;  // kept to a millionth
  // Whether a client's stream at that server waits for this build. If so, the client will stream
  // again should the server die.
  bool followed = true;
};

struct BuildClaim {
  std::string mapping;
  std::string build_id;
  std::string spec_digest;
  BuildClaimant claimant;
  absl::Time start_time;
  ClaimedProgress progress = {};
  // A caller asked for the end of this build.
  bool cancelled = false;
  // Time since the lease ended, by the clock of the store; negative while it holds.
  absl::Duration over_for;

  bool over() const { return over_for >= absl::ZeroDuration(); }
};

class BuildClaims {
 public:
  virtual ~BuildClaims() = default;

  // Identifies this process among all that use the store.
  virtual const std::string& server_id() const = 0;

  struct Taken {
    // The present claim: this server's, or that of its owner.
    BuildClaim claim;
    bool ours = false;
  };
  // Claims the id for `lease` from now, if it is unclaimed, its lease has expired, or this server
  // owns it. Each claim gets a larger epoch than all earlier ones. A cancelled build stays
  // cancelled.
  virtual absl::StatusOr<Taken> Take(absl::string_view mapping, absl::string_view build_id,
                                     absl::string_view spec_digest, absl::Duration lease) = 0;

  struct Renewal {
    std::string mapping;
    std::string build_id;
    int64_t epoch = 0;
    ClaimedProgress progress;
  };
  enum class Renewed { kOurs, kCancelled, kLost };
  // Prolongs claims of this server to `lease` from now, also expired ones that no other server
  // took, and says for each whether it is still ours, and whether its cancellation was requested. A
  // renewal need not survive a crash of the store.
  virtual absl::StatusOr<std::vector<Renewed>> Renew(absl::Span<const Renewal> renewals,
                                                     absl::Duration lease) = 0;
  // Asks the owner of this id to cancel its build. False if the id has no owner.
  virtual absl::StatusOr<bool> RequestCancel(absl::string_view mapping,
                                             absl::string_view build_id) = 0;
  // Gives up a claim of this server. Nothing happens if it is another's by now.
  virtual absl::Status Release(absl::string_view mapping, absl::string_view build_id,
                               int64_t epoch) = 0;
  virtual absl::StatusOr<std::optional<BuildClaim>> Find(absl::string_view mapping,
                                                         absl::string_view build_id) = 0;
  // Lists all claims, or those of one mapping, newest first.
  virtual absl::StatusOr<std::vector<BuildClaim>> List(absl::string_view mapping) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_BUILD_CLAIMS_H_
