// Claims of builds in the tables of a SQL database.
#ifndef PHIMAP_SERVER_STORE_SQL_BUILD_CLAIMS_H_
#define PHIMAP_SERVER_STORE_SQL_BUILD_CLAIMS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/build_claims.h"
#include "server/store/sql_database.h"
#include "server/store/store_clock.h"

namespace phimap {

class SqlBuildClaims final : public BuildClaims {
 public:
  // `server_id` must belong to this process alone. REQUIRES: `database` has the catalog's tables.
  SqlBuildClaims(std::shared_ptr<SqlDatabase> database, std::string server_id,
                 std::shared_ptr<StoreClock> clock = std::make_shared<StoreClock>())
      : database_(std::move(database)),
        server_id_(std::move(server_id)),
        clock_(std::move(clock)) {}

  const std::string& server_id() const override { return server_id_; }
  absl::StatusOr<Taken> Take(absl::string_view mapping, absl::string_view build_id,
                             absl::string_view spec_digest, absl::Duration lease) override;
  absl::StatusOr<std::vector<Renewed>> Renew(absl::Span<const Renewal> renewals,
                                             absl::Duration lease) override;
  absl::StatusOr<bool> RequestCancel(absl::string_view mapping,
                                     absl::string_view build_id) override;
  absl::Status Release(absl::string_view mapping, absl::string_view build_id,
                       int64_t epoch) override;
  absl::StatusOr<std::optional<BuildClaim>> Find(absl::string_view mapping,
                                                 absl::string_view build_id) override;
  absl::StatusOr<std::vector<BuildClaim>> List(absl::string_view mapping) override;

 private:
  // Looks at the clock. If it is not trusted, makes the claim's lease valid: its owner may still be
  // working.
  absl::Status Judge(SqlSession& session, BuildClaim& claim) const;

  const std::shared_ptr<SqlDatabase> database_;
  const std::string server_id_;
  const std::shared_ptr<StoreClock> clock_;
};

// Ends the claim of a build, within the transaction that records the build's end. Returns ABORTED
// (BUILD_TAKEN_OVER) if `claimant` does not own the claim any more.
absl::Status EndClaim(SqlSession& session, absl::string_view mapping, absl::string_view build_id,
                      const BuildClaimant& claimant);

// ABORTED: the former owner of the claim has lost it.
absl::Status BuildTakenOver(absl::string_view mapping, absl::string_view build_id);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SQL_BUILD_CLAIMS_H_
