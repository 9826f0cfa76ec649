// Who builds what. While a build runs, its server has a claim to (mapping, build_id) and renews it;
// nobody else builds under that id meanwhile.
//
// A claim is a lease: when it was not renewed in time, by the clock of the store, another server
// may take it over. That alone ends nothing: what counts is the claim's epoch, which every taking
// raises, and which Store::Publish compares in the transaction that makes a version visible. So a
// server that was stopped, or cut off, for longer than its lease publishes nothing if another one
// took its place, and goes on if none did.
//
// A claim ends with the transaction that records the build's end, or with Release. Claims are no
// names: nothing here changes a revision.
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

// Where a claimed build stands, as its server last said.
struct ClaimedProgress {
  // A BuildState.
  int64_t state = 0;
  int64_t rows_received = 0;
  std::string phase = {};
  double fraction = 0;  // kept to a millionth
  // Whether a stream of that server waits for this build: while it does, the client will stream
  // again if the server dies.
  bool followed = true;
};

struct BuildClaim {
  std::string mapping;
  std::string build_id;
  std::string spec_digest;
  BuildClaimant claimant;
  absl::Time start_time;
  ClaimedProgress progress = {};
  // Somebody asked for the end of this build.
  bool cancelled = false;
  // How long the lease has been over, by the clock of the store; negative while it is not.
  absl::Duration over_for;

  bool over() const { return over_for >= absl::ZeroDuration(); }
};

class BuildClaims {
 public:
  virtual ~BuildClaims() = default;

  // This process, of all that use the store.
  virtual const std::string& server_id() const = 0;

  struct Taken {
    // What stands now: this server's, or that of the one which has it.
    BuildClaim claim;
    bool ours = false;
  };
  // Takes an id that nobody has, whose lease is over, or that is this server's own already, for
  // `lease` from now. Each taking has a larger epoch than all before it. One that was asked to end
  // stays so.
  virtual absl::StatusOr<Taken> Take(absl::string_view mapping, absl::string_view build_id,
                                     absl::string_view spec_digest, absl::Duration lease) = 0;

  struct Renewal {
    std::string mapping;
    std::string build_id;
    int64_t epoch = 0;
    ClaimedProgress progress;
  };
  enum class Renewed { kOurs, kCancelled, kLost };
  // Prolongs claims of this server to `lease` from now, also those that are over and that nobody
  // took, and says of each whether it is still ours, and asked to end. A renewal need not survive a
  // crash of the store.
  virtual absl::StatusOr<std::vector<Renewed>> Renew(absl::Span<const Renewal> renewals,
                                                     absl::Duration lease) = 0;
  // Asks whoever has this id to end its build; false if nobody has.
  virtual absl::StatusOr<bool> RequestCancel(absl::string_view mapping,
                                             absl::string_view build_id) = 0;
  // Gives up a claim of this server. Nothing happens if it is another's by now.
  virtual absl::Status Release(absl::string_view mapping, absl::string_view build_id,
                               int64_t epoch) = 0;
  virtual absl::StatusOr<std::optional<BuildClaim>> Find(absl::string_view mapping,
                                                         absl::string_view build_id) = 0;
  // All, or those of one mapping, newest first.
  virtual absl::StatusOr<std::vector<BuildClaim>> List(absl::string_view mapping) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_BUILD_CLAIMS_H_
