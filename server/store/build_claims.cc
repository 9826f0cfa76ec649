#include "server/store/build_claims.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/audit.h"

namespace phimap {
namespace {

constexpr char kColumns[] =
    "SELECT mapping, build_id, spec_digest, server_id, epoch, start_time_us, state, rows_received,"
    " phase, fraction_ppm, followed, cancelled, now_us - lease_end_us, owner FROM claims, clock ";

BuildClaim ClaimIn(const SqlRows& rows, size_t row) {
  return {.mapping = rows.Text(row, 0),
          .build_id = rows.Text(row, 1),
          .spec_digest = rows.Text(row, 2),
          .claimant = {.server_id = rows.Text(row, 3), .epoch = rows.Int(row, 4)},
          .start_time = absl::FromUnixMicros(rows.Int(row, 5)),
          .progress = {.state = rows.Int(row, 6),
                       .rows_received = rows.Int(row, 7),
                       .phase = rows.Text(row, 8),
                       .fraction = static_cast<double>(rows.Int(row, 9)) / 1e6,
                       .followed = rows.Int(row, 10) != 0},
          .cancelled = rows.Int(row, 11) != 0,
          .owner = rows.Text(row, 13),
          .over_for = absl::Microseconds(rows.Int(row, 12))};
}

absl::StatusOr<std::optional<BuildClaim>> FindIn(SqlSession& session, absl::string_view mapping,
                                                 absl::string_view build_id) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Run(absl::StrCat(kColumns, "WHERE mapping = $1 AND build_id = $2"),
                  {mapping, build_id}));
  if (rows.empty()) return std::nullopt;
  return ClaimIn(rows, 0);
}

// The statement itself checks that the claim may be taken, because on PostgreSQL renewals do not
// wait for other writers. The first epoch is the time of the claim instead of 1, so that a claim
// that was released and taken again gets another epoch, and at least `least_epoch`, because a clock
// may stand still in between.
absl::Status TakeIn(SqlSession& session, absl::string_view mapping, absl::string_view build_id,
                    absl::string_view spec_digest, absl::string_view server_id,
                    absl::Duration lease, absl::string_view owner, int64_t least_epoch) {
  return session
      .Run(
          "INSERT INTO claims (mapping, build_id, spec_digest, server_id, epoch, start_time_us,"
          " lease_end_us, state, rows_received, phase, fraction_ppm, followed, cancelled,"
          " owner)"
          " SELECT $1, $2, $3, $4, CASE WHEN now_us < $5 THEN $5 ELSE now_us END, now_us,"
          " now_us + $6, 0, 0, '', 0, 1, 0, $7 FROM clock"
          " WHERE true ON CONFLICT (mapping, build_id) DO UPDATE SET spec_digest = "
          "excluded.spec_digest,"
          " server_id = excluded.server_id, start_time_us = excluded.start_time_us,"
          " epoch = CASE WHEN claims.epoch < excluded.epoch THEN excluded.epoch"
          " ELSE claims.epoch + 1 END,"
          " lease_end_us = excluded.lease_end_us, state = 0, rows_received = 0, phase = '',"
          " fraction_ppm = 0, followed = 1, owner = excluded.owner"
          " WHERE claims.server_id = excluded.server_id"
          " OR claims.lease_end_us <= excluded.start_time_us",
          {mapping, build_id, spec_digest, server_id, least_epoch, absl::ToInt64Microseconds(lease),
           owner})
      .status();
}

int64_t PartsPerMillion(double fraction) {
  return std::llround(std::clamp(fraction, 0.0, 1.0) * 1e6);
}

absl::StatusOr<BuildClaims::Renewed> RenewIn(SqlSession& session, absl::string_view server_id,
                                             const BuildClaims::Renewal& renewal,
                                             absl::Duration lease) {
  const ClaimedProgress& progress = renewal.progress;
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Run("UPDATE claims SET lease_end_us = (SELECT now_us FROM clock) + $1, state = $2,"
                  " rows_received = $3, phase = $4, fraction_ppm = $5, followed = $6"
                  " WHERE mapping = $7 AND build_id = $8 AND server_id = $9 AND epoch = $10"
                  " RETURNING cancelled",
                  {absl::ToInt64Microseconds(lease), progress.state, progress.rows_received,
                   absl::string_view(progress.phase), PartsPerMillion(progress.fraction),
                   int64_t{progress.followed}, absl::string_view(renewal.mapping),
                   absl::string_view(renewal.build_id), server_id, renewal.epoch}));
  if (rows.empty()) return BuildClaims::Renewed::kLost;
  return rows.Int(0, 0) != 0 ? BuildClaims::Renewed::kCancelled : BuildClaims::Renewed::kOurs;
}

}  // namespace

absl::Status BuildClaims::Judge(SqlSession& session, BuildClaim& claim) const {
  PHIMAP_RETURN_IF_ERROR(clock_->Now(session).status());
  if (!clock_->trusted()) claim.over_for = std::min(claim.over_for, -absl::Microseconds(1));
  return absl::OkStatus();
}

absl::StatusOr<BuildClaims::Taken> BuildClaims::Take(absl::string_view mapping,
                                                     absl::string_view build_id,
                                                     absl::string_view spec_digest,
                                                     absl::Duration lease,
                                                     absl::string_view owner) {
  Taken taken;
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(std::optional<BuildClaim> before,
                                FindIn(session, mapping, build_id));
        if (before.has_value()) PHIMAP_RETURN_IF_ERROR(Judge(session, *before));
        if (before.has_value() && before->claimant.server_id != server_id_ && !before->over()) {
          taken = {.claim = *std::move(before), .ours = false};
          return absl::OkStatus();
        }
        PHIMAP_RETURN_IF_ERROR(TakeIn(session, mapping, build_id, spec_digest, server_id_, lease,
                                      owner, last_epoch_.load() + 1));
        PHIMAP_ASSIGN_OR_RETURN(std::optional<BuildClaim> after,
                                FindIn(session, mapping, build_id));
        if (!after.has_value())
          return absl::InternalError("a claim that was just taken is missing");
        taken.ours = after->claimant.server_id == server_id_ &&
                     (!before.has_value() || before->claimant.epoch != after->claimant.epoch);
        taken.claim = *std::move(after);
        return absl::OkStatus();
      },
      [&](SqlSession& session) -> absl::StatusOr<bool> {
        PHIMAP_ASSIGN_OR_RETURN(const std::optional<BuildClaim> now,
                                FindIn(session, mapping, build_id));
        return now.has_value() && now->claimant == taken.claim.claimant;
      },
      absl::StrCat("build ", build_id, " was claimed")));
  int64_t last = last_epoch_.load();
  const int64_t epoch = taken.claim.claimant.epoch;
  while (last < epoch && !last_epoch_.compare_exchange_weak(last, epoch)) {
  }
  return taken;
}

absl::StatusOr<std::vector<BuildClaims::Renewed>> BuildClaims::Renew(
    absl::Span<const Renewal> renewals, absl::Duration lease) {
  std::vector<Renewed> renewed;
  if (renewals.empty()) return renewed;
  PHIMAP_RETURN_IF_ERROR(database_->WriteAside([&](SqlSession& session) -> absl::Status {
    renewed.clear();
    for (const Renewal& renewal : renewals) {
      PHIMAP_ASSIGN_OR_RETURN(const Renewed one, RenewIn(session, server_id_, renewal, lease));
      renewed.push_back(one);
    }
    return absl::OkStatus();
  }));
  return renewed;
}

absl::StatusOr<bool> BuildClaims::RequestCancel(absl::string_view mapping,
                                                absl::string_view build_id,
                                                const ChangeOrigin& origin) {
  bool found = false;
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(const std::optional<BuildClaim> claim,
                                FindIn(session, mapping, build_id));
        found = claim.has_value();
        if (!found || claim->cancelled) return absl::OkStatus();
        PHIMAP_RETURN_IF_ERROR(
            session
                .Run("UPDATE claims SET cancelled = 1 WHERE mapping = $1 AND build_id = $2",
                     {mapping, build_id})
                .status());
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        AuditEntry entry;
        entry.SetOrigin(origin);
        entry.mapping = std::string(mapping);
        entry.build_id = std::string(build_id);
        return AddAuditEntry(session, std::move(entry), now);
      },
      [&](SqlSession& session) -> absl::StatusOr<bool> {
        PHIMAP_ASSIGN_OR_RETURN(const std::optional<BuildClaim> claim,
                                FindIn(session, mapping, build_id));
        return !claim.has_value() || claim->cancelled;
      },
      absl::StrCat("build ", build_id, " was asked to stop")));
  return found;
}

absl::Status BuildClaims::Release(absl::string_view mapping, absl::string_view build_id,
                                  int64_t epoch) {
  return database_->WriteAside([&](SqlSession& session) {
    return session
        .Run(
            "DELETE FROM claims WHERE mapping = $1 AND build_id = $2 AND server_id = $3"
            " AND epoch = $4",
            {mapping, build_id, absl::string_view(server_id_), epoch})
        .status();
  });
}

absl::StatusOr<std::optional<BuildClaim>> BuildClaims::Find(absl::string_view mapping,
                                                            absl::string_view build_id) {
  std::optional<BuildClaim> found;
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(found, FindIn(session, mapping, build_id));
    return found.has_value() ? Judge(session, *found) : absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<std::vector<BuildClaim>> BuildClaims::List(absl::string_view mapping) {
  std::vector<BuildClaim> claims;
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    claims.clear();
    PHIMAP_ASSIGN_OR_RETURN(
        const SqlRows rows,
        session.Run(absl::StrCat(kColumns,
                                 "WHERE $1 = '' OR mapping = $1"
                                 " ORDER BY start_time_us DESC, mapping, build_id"),
                    {mapping}));
    for (size_t row = 0; row < rows.size(); ++row) {
      claims.push_back(ClaimIn(rows, row));
      PHIMAP_RETURN_IF_ERROR(Judge(session, claims.back()));
    }
    return absl::OkStatus();
  }));
  return claims;
}

absl::Status EndClaim(SqlSession& session, absl::string_view mapping, absl::string_view build_id,
                      const BuildClaimant& claimant) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows ended,
      session.Run("DELETE FROM claims WHERE mapping = $1 AND build_id = $2 AND server_id = $3"
                  " AND epoch = $4 RETURNING epoch",
                  {mapping, build_id, absl::string_view(claimant.server_id), claimant.epoch}));
  if (!ended.empty()) return absl::OkStatus();
  return BuildTakenOver(mapping, build_id);
}

absl::Status BuildTakenOver(absl::string_view mapping, absl::string_view build_id) {
  return MakeError(absl::StatusCode::kAborted, reason::kBuildTakenOver, "build_id",
                   absl::StrCat("another server took over build ", build_id, " of \"", mapping,
                                "\", because this server did not renew its lease in time; send "
                                "the stream again, or attach to the build there"),
                   {{"mapping", std::string(mapping)}, {"build_id", std::string(build_id)}},
                   /*retry_delay_ms=*/1000);
}

}  // namespace phimap
