#include "server/store/garbage_collector.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "server/store/catalog_tables.h"

namespace phimap {
namespace {

constexpr char kLease[] = "maintenance";
// Lifetime of the lease. If a collector dies, another one can follow after this time.
constexpr absl::Duration kLeaseTime = absl::Minutes(10);

// Every step may be repeated without harm, so a commit with an unknown outcome counts as done.
absl::StatusOr<bool> IsStored(SqlSession&) { return true; }

}  // namespace

absl::StatusOr<GarbageReport> GarbageCollector::Run(absl::Duration grace) {
  GarbageReport report;
  PHIMAP_ASSIGN_OR_RETURN(Work work, Look(grace));
  if (!clock_->trusted() && grace > absl::ZeroDuration()) return report;
  if (!work.unlisted.empty() || !work.old.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(report.busy_holder, TakeLease());
    if (!report.busy_holder.empty()) return report;
    const absl::Status done = Do(work, grace, &report);
    const absl::Status returned = ReturnLease();  // If this fails, the lease expires.
    PHIMAP_RETURN_IF_ERROR(done);
    PHIMAP_RETURN_IF_ERROR(returned);
  }
  PHIMAP_ASSIGN_OR_RETURN(const int64_t remains, blobs_->RemoveRemains(work.now - grace));
  report.remains += remains;
  return report;
}

absl::StatusOr<GarbageCollector::Work> GarbageCollector::Look(absl::Duration grace) {
  // Lists the blobs before it reads the rows. Blobs that are written later are not in this list. If
  // a version has meanwhile begun to refer to a blob in the list, the rows show that.
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<StoredBlob> blobs, blobs_->List());
  Work work;
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    work = Work();
    PHIMAP_ASSIGN_OR_RETURN(work.now, clock_->Now(session));
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows referenced,
                            session.Run("SELECT DISTINCT digest FROM versions"));
    absl::flat_hash_set<std::string> known;
    for (size_t i = 0; i < referenced.size(); ++i) known.insert(referenced.Text(i, 0));
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows listed,
                            session.Run("SELECT digest, since_us FROM unreferenced"));
    const int64_t start_us = absl::ToUnixMicros(work.now - grace);
    for (size_t i = 0; i < listed.size(); ++i) {
      known.insert(listed.Text(i, 0));
      if (listed.Int(i, 1) <= start_us) work.old.push_back(listed.Text(i, 0));
    }
    for (const StoredBlob& blob : blobs) {
      if (!known.contains(blob.digest)) work.unlisted.push_back(blob.digest);
    }
    return absl::OkStatus();
  }));
  return work;
}

absl::Status GarbageCollector::Do(const Work& work, absl::Duration grace, GarbageReport* report) {
  PHIMAP_RETURN_IF_ERROR(List(work.unlisted));
  report->listed = static_cast<int64_t>(work.unlisted.size());
  for (const std::string& digest : work.old) {
    absl::Status removed = RemoveOne(digest, grace, report);
    if (absl::IsResourceExhausted(removed) && grace <= absl::ZeroDuration()) {
      // The file was moved aside, but the disk had no space to write the row. Unlinking the files
      // that were moved aside frees space.
      PHIMAP_ASSIGN_OR_RETURN(const int64_t remains, blobs_->RemoveRemains(work.now));
      report->remains += remains;
      removed = RemoveOne(digest, grace, report);
    }
    PHIMAP_RETURN_IF_ERROR(removed);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> GarbageCollector::TakeLease() {
  std::string holder;
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(
            session
                .Run("DELETE FROM leases WHERE lease = $1 AND "
                     "(holder = $2 OR end_time_us <= (SELECT now_us FROM clock))",
                     {kLease, holder_})
                .status());
        PHIMAP_RETURN_IF_ERROR(
            session
                .Run("INSERT INTO leases (lease, holder, end_time_us) "
                     "SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), now_us + $3 FROM clock "
                     "WHERE true ON CONFLICT (lease) DO NOTHING",
                     {kLease, holder_, absl::ToInt64Microseconds(kLeaseTime)})
                .status());
        PHIMAP_ASSIGN_OR_RETURN(
            const SqlRows row, session.Run("SELECT holder FROM leases WHERE lease = $1", {kLease}));
        holder = row.Text(0, 0) == holder_ ? std::string() : row.Text(0, 0);
        return absl::OkStatus();
      },
      &IsStored, "the maintenance lease was taken"));
  return holder;
}

absl::Status GarbageCollector::ReturnLease() {
  return database_->Write(
      [&](SqlSession& session) {
        return session.Run("DELETE FROM leases WHERE lease = $1 AND holder = $2", {kLease, holder_})
            .status();
      },
      &IsStored, "the maintenance lease was returned");
}

absl::Status GarbageCollector::List(const std::vector<std::string>& digests) {
  if (digests.empty()) return absl::OkStatus();
  return database_->Write(
      [&](SqlSession& session) -> absl::Status {
        CatalogTables tables(session);
        for (const std::string& digest : digests) PHIMAP_RETURN_IF_ERROR(tables.List(digest));
        return absl::OkStatus();
      },
      &IsStored, "artifacts without a version were listed");
}

absl::Status GarbageCollector::RemoveOne(absl::string_view digest, absl::Duration grace,
                                         GarbageReport* report) {
  GarbageReport done;
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        done = GarbageReport();
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        const int64_t start_us = absl::ToUnixMicros(now - grace);
        PHIMAP_ASSIGN_OR_RETURN(
            const SqlRows listed,
            session.Run("SELECT 1 FROM unreferenced WHERE digest = $1 AND since_us <= $2 AND "
                        "NOT EXISTS (SELECT 1 FROM versions WHERE digest = $1)",
                        {digest, start_us}));
        if (listed.empty()) return absl::OkStatus();  // Referred to again since Look.
        PHIMAP_ASSIGN_OR_RETURN(const SqlRows hold,
                                session.Run("SELECT 1 FROM holds WHERE end_time_us > $1 LIMIT 1",
                                            {absl::ToUnixMicros(now)}));
        if (!hold.empty()) {
          done.held = 1;
          return absl::OkStatus();
        }
        PHIMAP_ASSIGN_OR_RETURN(const bool gone,
                                blobs_->RemoveUnused(session, digest, now - grace));
        if (!gone) return absl::OkStatus();
        done.removed = 1;
        return CatalogTables(session).Unlist(digest);
      },
      &IsStored, absl::StrCat("artifact ", digest, " was removed")));
  report->held += done.held;
  report->removed += done.removed;
  return absl::OkStatus();
}

}  // namespace phimap
