// Ownership of builds. While a build runs, its server has a claim to (mapping, build_id) and renews
// it; no other server builds under that id meanwhile.
//
// A claim is a lease: if it is not renewed in time, by the clock of the store, another server may
// take it over. Expiry alone does not end a build. What counts is the claim's epoch: every
// take-over increases it, and Store::Publish compares it in the transaction that makes a version
// visible. So a server that was stopped or cut off for longer than its lease publishes nothing if
// another server has taken the claim, and continues if none has.
//
// A claim ends with the transaction that records the build's end, or with Release. Claims are not
// names, so they do not change the revision.
//
// Blocking: every call may wait for a disk, a network or another writer.
// Thread-safety: all methods may be called from any thread.
// Errors: those of the database (sql_database.h).
#ifndef PHIMAP_SERVER_STORE_BUILD_CLAIMS_H_
#define PHIMAP_SERVER_STORE_BUILD_CLAIMS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/admission/change_origin.h"
#include "server/store/records.h"
#include "server/store/sql_database.h"
#include "server/store/store_clock.h"

namespace phimap {

// Progress of a claimed build, as its server last reported it.
struct ClaimedProgress {
  // A BuildState.
  int64_t state = 0;
  int64_t rows_received = 0;
  std::string phase = {};
  double fraction = 0;  // kept to a millionth
  // Whether a client's stream at that server waits for this build. If so, the client will send its
  // stream again if the server dies.
  bool followed = true;
};

struct BuildClaim {
  std::string mapping;
  std::string build_id;
  std::string spec_digest;
  BuildClaimant claimant;
  absl::Time start_time;
  ClaimedProgress progress = {};
  // A caller asked to cancel this build.
  bool cancelled = false;
  // The name of the caller who ordered it; "" if it has none.
  std::string owner = {};
  // Time since the lease ended, by the clock of the store; negative while the lease is valid, or
  // while that clock is not trusted.
  absl::Duration over_for;

  bool over() const { return over_for >= absl::ZeroDuration(); }
};

class BuildClaims {
 public:
  // `server_id` must belong to this process alone. REQUIRES: `database` has the catalog's tables.
  BuildClaims(std::shared_ptr<SqlDatabase> database, std::string server_id,
              std::shared_ptr<StoreClock> clock = std::make_shared<StoreClock>())
      : database_(std::move(database)),
        server_id_(std::move(server_id)),
        clock_(std::move(clock)) {}

  // Identifies this process among all processes that use the store.
  const std::string& server_id() const { return server_id_; }

  struct Taken {
    // The present claim on the build: this server's, or that of another owner.
    BuildClaim claim;
    bool ours = false;
  };
  // Claims the build for `lease` from now, if nobody has claimed it, if the lease of the present
  // claim has expired, or if this server owns that claim. While the store's clock is not trusted,
  // no claim counts as expired. Each claim gets a larger epoch than all earlier ones. A cancelled
  // build stays cancelled. `owner`: the name of the caller who ordered the build.
  absl::StatusOr<Taken> Take(absl::string_view mapping, absl::string_view build_id,
                             absl::string_view spec_digest, absl::Duration lease,
                             absl::string_view owner = "");

  struct Renewal {
    std::string mapping;
    std::string build_id;
    int64_t epoch;
    ClaimedProgress progress;
  };
  enum class Renewed { kOurs, kCancelled, kLost };
  // Extends claims of this server to `lease` from now, including expired claims that no other
  // server has taken. Returns for each claim whether it is still this server's, and whether its
  // cancellation was requested. A renewal need not survive a crash of the store.
  absl::StatusOr<std::vector<Renewed>> Renew(absl::Span<const Renewal> renewals,
                                             absl::Duration lease);
  // Asks the server that has the claim on this build to cancel it, for `origin`. Returns false if
  // there is no claim.
  absl::StatusOr<bool> RequestCancel(absl::string_view mapping, absl::string_view build_id,
                                     const ChangeOrigin& origin = {});
  // Gives up a claim of this server. No-op if another server has the claim by now.
  absl::Status Release(absl::string_view mapping, absl::string_view build_id, int64_t epoch);
  absl::StatusOr<std::optional<BuildClaim>> Find(absl::string_view mapping,
                                                 absl::string_view build_id);
  // Lists all claims, or those of one mapping, newest first.
  absl::StatusOr<std::vector<BuildClaim>> List(absl::string_view mapping);

 private:
  // Looks at the clock. If it is not trusted, makes the claim's lease valid: its owner may still be
  // working.
  absl::Status Judge(SqlSession& session, BuildClaim& claim) const;

  const std::shared_ptr<SqlDatabase> database_;
  const std::string server_id_;
  // The largest epoch of a claim that Take has seen.
  std::atomic<int64_t> last_epoch_{0};
  const std::shared_ptr<StoreClock> clock_;
};

// Ends the claim of a build, within the transaction that records the build's end. Returns ABORTED
// (BUILD_TAKEN_OVER) if `claimant` does not own the claim any more.
absl::Status EndClaim(SqlSession& session, absl::string_view mapping, absl::string_view build_id,
                      const BuildClaimant& claimant);

// ABORTED: the former owner of the claim has lost it.
absl::Status BuildTakenOver(absl::string_view mapping, absl::string_view build_id);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_BUILD_CLAIMS_H_
