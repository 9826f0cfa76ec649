#include "server/store/store.h"

#include <algorithm>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/plan/artifact.h"
#include "core/plan/plan.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "server/store/catalog_errors.h"
#include "server/store/catalog_tables.h"
#include "server/store/fleet_member.h"
#include "server/store/sha256.h"

namespace phimap {

using Op = StoreOperation;

Store::Store(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs,
             std::shared_ptr<StoreClock> clock, std::unique_ptr<BuildClaims> claims)
    : database_(std::move(database)),
      blobs_(std::move(blobs)),
      clock_(std::move(clock)),
      claims_(std::move(claims)) {}

template <typename Function>
auto Store::ReadOnce(const Function& read) {
  std::invoke_result_t<Function, SqlSession&> result;
  const absl::Status status = database_->Read([&](SqlSession& session) {
    result = read(session);
    return result.status();
  });
  // The snapshot may have failed after `read`, or before it was called.
  if (!status.ok()) result = status;
  return result;
}

template <typename Function>
auto Store::Read(StoreOperation operation, const Function& read) {
  return Metered(metrics_, operation, [&] { return ReadOnce(read); });
}

namespace {

// By what an operation is found. Each caller has ids of its own, so that none can take, or learn
// from an error, what another has done.
std::string OperationKey(const ChangeOrigin& origin) {
  if (origin.operation_id.empty()) return NewOperationId();
  if (origin.principal.empty()) return origin.operation_id;
  return absl::StrCat(origin.principal, " ", origin.operation_id);
}

}  // namespace

absl::StatusOr<std::string> Store::Make(const ChangeOrigin& origin, std::string request,
                                        std::string what, Change change) {
  if (check_audit_) PHIMAP_RETURN_IF_ERROR(check_audit_());
  const Operation operation{
      .id = OperationKey(origin), .request = std::move(request), .what = std::move(what)};
  Revision began_at;
  std::string outcome;
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        CatalogTables tables(session);
        PHIMAP_ASSIGN_OR_RETURN(began_at, tables.CurrentRevision());
        PHIMAP_ASSIGN_OR_RETURN(std::optional<std::string> logged, tables.FindOperation(operation));
        if (logged.has_value()) {
          outcome = *std::move(logged);
          return absl::OkStatus();
        }
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        AuditEntry entry;
        entry.SetOrigin(origin);
        PHIMAP_ASSIGN_OR_RETURN(outcome, change(session, now, entry));
        PHIMAP_RETURN_IF_ERROR(tables.AddOperation(operation, outcome, now));
        if (!entry.mapping.empty()) {
          PHIMAP_RETURN_IF_ERROR(AddAuditEntry(session, std::move(entry), now));
        }
        return PruneIn(session, now).status();
      },
      // Whether an operation whose commit was not answered has been committed. An error if the
      // catalog's history does not contain `began_at`.
      [&](SqlSession& session) -> absl::StatusOr<bool> {
        CatalogTables tables(session);
        PHIMAP_ASSIGN_OR_RETURN(const bool same, tables.IsInHistory(began_at));
        if (!same) {
          return absl::UnavailableError("the database was restored or failed over meanwhile");
        }
        return tables.HasOperation(operation.id);
      },
      operation.what));
  if (audit_changed_) audit_changed_();
  return outcome;
}

absl::StatusOr<std::vector<AuditEntry>> Store::ListAudit(const AuditQuery& query, int limit) {
  return ReadOnce([&](SqlSession& session) { return ReadAudit(session, query, limit); });
}

absl::Status Store::RecordRefusal(const AuditEntry& entry) {
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        return AddAuditEntry(session, entry, now);
      },
      // Whether the refusal was written matters less than that it is not written twice.
      [](SqlSession&) { return true; }, "a refused change was written down"));
  if (audit_changed_) audit_changed_();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Store::PruneIn(SqlSession& session, absl::Time now) const {
  if (!clock_->trusted()) return 0;
  PHIMAP_RETURN_IF_ERROR(session
                             .Run("DELETE FROM operations WHERE end_time_us < $1",
                                  {absl::ToUnixMicros(now - kOperationRetention)})
                             .status());
  PHIMAP_RETURN_IF_ERROR(PruneAudit(session, now));
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows builds,
                          session.Run("DELETE FROM builds WHERE end_time_us < $1 RETURNING 1",
                                      {RetentionStartMicros(now)}));
  return static_cast<int64_t>(builds.size());
}

absl::StatusOr<int64_t> Store::Prune() {
  int64_t removed = 0;
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        PHIMAP_ASSIGN_OR_RETURN(removed, PruneIn(session, now));
        return absl::OkStatus();
      },
      // It does not matter whether the records were removed, because they are not shown either way.
      [](SqlSession&) { return true; }, "records of builds were removed"));
  return removed;
}

// Publishing, and how builds ended.

namespace {

// Maximum number of attempts to store a version. The second write makes the blob fresh, and garbage
// collection leaves fresh blobs alone; the third attempt is for clocks that differ.
constexpr int kAttempts = 3;

// Returns the time at which a version that is used now expires, rounded to microseconds, so that
// the value returned now equals the one that is later read from the database.
absl::Time ExpiryAfter(absl::Duration ttl, absl::Time now) {
  if (ttl == absl::InfiniteDuration()) return absl::InfiniteFuture();
  return absl::FromUnixMicros(absl::ToUnixMicros(now + ttl));
}

absl::Status CheckPublishableIn(CatalogTables& tables, const PublishRequest& request,
                                absl::Time now) {
  const std::string& mapping = request.version.mapping;
  PHIMAP_ASSIGN_OR_RETURN(const bool known, tables.HasBuild(mapping, request.build_id, now));
  if (known) {
    return MakeError(
        absl::StatusCode::kAlreadyExists, reason::kBuildExists, "build_id",
        absl::StrCat("build ", request.build_id, " of \"", mapping, "\" has already ended"),
        {{"mapping", mapping}, {"build_id", request.build_id}});
  }
  if (!request.expected_newest.has_value()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const int64_t newest, tables.NewestVersion(mapping));
  if (newest == *request.expected_newest) return absl::OkStatus();
  return MakeError(absl::StatusCode::kAborted, reason::kNewestVersionChanged, "",
                   absl::StrCat("expected version ", *request.expected_newest,
                                " to be the newest of \"", mapping, "\", but it is ", newest),
                   {{"mapping", mapping},
                    {"expected", absl::StrCat(*request.expected_newest)},
                    {"actual", absl::StrCat(newest)}});
}

absl::Status EndClaimOf(SqlSession& session, absl::string_view mapping, absl::string_view build_id,
                        const std::optional<BuildClaimant>& claimant) {
  if (!claimant.has_value()) return absl::OkStatus();
  return EndClaim(session, mapping, build_id, *claimant);
}

absl::Status ShareReached(const ChangeOrigin& origin, absl::string_view what, int64_t limit,
                          int64_t taken) {
  return MakeError(
      absl::StatusCode::kResourceExhausted, reason::kStoreShareReached, "",
      absl::StrCat(Quoted(origin.principal), " may keep ", limit, " ", what, " in the store (",
                   what, "=", limit, " in the server's token file) and has ", taken,
                   "; delete versions that are not needed, or ask the operator for more"),
      {{"limited", std::string(what)},
       {"limit", absl::StrCat(limit)},
       {"actual", absl::StrCat(taken)}});
}

// Checks that the versions of a caller leave room for one more, of `bytes` bytes.
absl::Status CheckShareIn(SqlSession& session, const ChangeOrigin& origin, int64_t bytes) {
  const StoreShare& share = origin.stored;
  if (origin.principal.empty() || share == StoreShare()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Run("SELECT count(*), CAST(coalesce(sum(artifact_size_bytes), 0) AS BIGINT) "
                  "FROM versions WHERE made_by = $1",
                  {origin.principal}));
  const int64_t versions = rows.Int(0, 0);
  const int64_t taken = rows.Int(0, 1);
  if (share.versions.has_value() && versions + 1 > *share.versions) {
    return ShareReached(origin, "versions", *share.versions, versions);
  }
  if (share.bytes.has_value() && taken + bytes > *share.bytes) {
    return ShareReached(origin, "bytes", *share.bytes, taken);
  }
  return absl::OkStatus();
}

// What an entry of the audit says of a version that was added.
void NoteAdded(const VersionRecord& version, AuditEntry& entry) {
  entry.mapping = version.mapping;
  entry.version = version.number;
  entry.digest = version.digest;
}

// What it says of a version that was deleted.
void NoteDeleted(const VersionRecord& version, AuditEntry& entry) {
  entry.mapping = version.mapping;
  entry.previous_version = version.number;
  entry.previous_digest = version.digest;
}

// Makes an imported version permanent, independently of the ttl it was built with.
absl::Status KeepForEver(SqlSession& session, VersionRecord& version, absl::Time now) {
  if (version.ttl == absl::InfiniteDuration()) return absl::OkStatus();
  version.ttl = absl::InfiniteDuration();
  version.expire_time = absl::InfiniteFuture();
  return CatalogTables(session).SetTtl(version.mapping, version.number, version.ttl, now);
}

}  // namespace

absl::StatusOr<VersionRecord> Store::Publish(const PublishRequest& request,
                                             absl::string_view artifact) {
  return Metered(metrics_, Op::kPublish, [&]() -> absl::StatusOr<VersionRecord> {
    VersionRecord version = request.version;
    version.digest = Sha256Hex(artifact);
    version.artifact_size_bytes = static_cast<int64_t>(artifact.size());
    version.artifact_format = ArtifactFormatOf(artifact);
    version.made_by = request.origin.principal;
    // This check avoids a useless write; the transaction checks again.
    PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
      CatalogTables tables(session);
      PHIMAP_RETURN_IF_ERROR(CheckPublishableIn(tables, request, now));
      return CheckShareIn(session, request.origin, version.artifact_size_bytes);
    }));
    return Add(version.digest, artifact, [&] { return InsertBuilt(request, version); });
  });
}

absl::Status Store::CheckCanAdd(const ChangeOrigin& origin) {
  if (check_audit_) PHIMAP_RETURN_IF_ERROR(check_audit_());
  if (origin.principal.empty() || origin.stored == StoreShare()) return absl::OkStatus();
  return database_->Read(
      [&](SqlSession& session) { return CheckShareIn(session, origin, /*bytes=*/0); });
}

absl::StatusOr<VersionRecord> Store::Import(const VersionRecord& version,
                                            absl::string_view artifact,
                                            const ChangeOrigin& origin) {
  return Metered(metrics_, Op::kImport, [&]() -> absl::StatusOr<VersionRecord> {
    VersionRecord imported = version;
    imported.digest = Sha256Hex(artifact);
    imported.artifact_size_bytes = static_cast<int64_t>(artifact.size());
    imported.artifact_format = ArtifactFormatOf(artifact);
    imported.made_by = origin.principal;
    // As in Publish: an artifact over the caller's share is not written at all.
    PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(
          const SqlRows there,
          session.Run("SELECT 1 FROM versions WHERE mapping = $1 AND digest = $2 LIMIT 1",
                      {imported.mapping, imported.digest}));
      if (!there.empty()) return absl::OkStatus();
      return CheckShareIn(session, origin, imported.artifact_size_bytes);
    }));
    return Add(imported.digest, artifact, [&] { return InsertImported(imported, origin); });
  });
}

absl::StatusOr<VersionRecord> Store::Add(const std::string& digest, absl::string_view artifact,
                                         Insert insert) {
  for (int attempt = 1;; ++attempt) {
    const absl::Status written = blobs_->Write(digest, artifact);
    absl::StatusOr<VersionRecord> version = written.ok() ? insert() : written;
    if (attempt == kAttempts || !IsArtifactRemoved(version.status())) return version;
  }
}

absl::Status Store::UseArtifact(SqlSession& session, absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(const bool there, blobs_->Contains(session, digest));
  if (!there) return ArtifactRemoved(digest);
  return CatalogTables(session).Unlist(digest);
}

absl::StatusOr<VersionRecord> Store::InsertBuilt(const PublishRequest& request,
                                                 VersionRecord version) {
  const auto insert = [&](SqlSession& session, absl::Time now,
                          AuditEntry& entry) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    version.create_time = now;
    version.expire_time = ExpiryAfter(version.ttl, now);
    PHIMAP_RETURN_IF_ERROR(CheckPublishableIn(tables, request, now));
    PHIMAP_RETURN_IF_ERROR(CheckAllRead(session, version.artifact_format, kArithmetic));
    PHIMAP_RETURN_IF_ERROR(CheckShareIn(session, request.origin, version.artifact_size_bytes));
    PHIMAP_RETURN_IF_ERROR(
        EndClaimOf(session, version.mapping, request.build_id, request.claimant));
    PHIMAP_RETURN_IF_ERROR(UseArtifact(session, version.digest));
    // A record with this build's id may be one that is no longer shown.
    PHIMAP_RETURN_IF_ERROR(tables.DeleteBuild(version.mapping, request.build_id));
    PHIMAP_ASSIGN_OR_RETURN(version.number, tables.TakeNumber(version.mapping, now));
    PHIMAP_RETURN_IF_ERROR(tables.InsertVersion(version));
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(version.mapping));
    PHIMAP_RETURN_IF_ERROR(tables.InsertBuild({.mapping = version.mapping,
                                               .build_id = request.build_id,
                                               .spec_digest = request.spec_digest,
                                               .rows_received = request.rows_received,
                                               .end_time = now,
                                               .version = version.number,
                                               .error = absl::OkStatus()}));
    NoteAdded(version, entry);
    entry.build_id = request.build_id;
    return std::string();
  };
  const std::string build =
      absl::StrCat("build ", request.build_id, " of ", Quoted(version.mapping));
  PHIMAP_RETURN_IF_ERROR(
      Make(request.origin, build, absl::StrCat(build, " was stored (GetBuild shows it)"), insert)
          .status());
  return version;
}

absl::StatusOr<VersionRecord> Store::InsertImported(const VersionRecord& imported,
                                                    const ChangeOrigin& origin) {
  const auto insert = [&](SqlSession& session, absl::Time now,
                          AuditEntry& entry) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    PHIMAP_ASSIGN_OR_RETURN(
        std::vector<VersionRecord> there,
        tables.Versions("WHERE mapping = $1 AND digest = $2 ORDER BY number DESC LIMIT 1",
                        {imported.mapping, imported.digest}));
    if (!there.empty()) {
      if (there[0].ttl != absl::InfiniteDuration()) {
        NoteAdded(there[0], entry);
        entry.detail = "the version was there and is kept for ever from now on";
      }
      PHIMAP_RETURN_IF_ERROR(KeepForEver(session, there[0], now));
      return TextOf(there[0]);
    }
    PHIMAP_RETURN_IF_ERROR(CheckAllRead(session, imported.artifact_format, kArithmetic));
    PHIMAP_RETURN_IF_ERROR(CheckShareIn(session, origin, imported.artifact_size_bytes));
    PHIMAP_RETURN_IF_ERROR(UseArtifact(session, imported.digest));
    VersionRecord version = imported;
    version.create_time = now;
    version.imported = true;
    PHIMAP_ASSIGN_OR_RETURN(version.number, tables.TakeNumber(version.mapping, now));
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(version.mapping));
    PHIMAP_RETURN_IF_ERROR(tables.InsertVersion(version));
    NoteAdded(version, entry);
    return TextOf(version);
  };
  PHIMAP_ASSIGN_OR_RETURN(
      const std::string outcome,
      Make(origin, absl::StrCat("import ", imported.mapping, " ", imported.digest),
           absl::StrCat("the artifact was stored as a version of ", Quoted(imported.mapping),
                        " (if not, import it again)"),
           insert));
  return VersionFrom(outcome);
}

absl::Status Store::RecordFailedBuild(const BuildRecord& record, const ChangeOrigin& origin,
                                      const ChangeOrigin* cancelled_by) {
  PHIMAP_CHECK(!record.error.ok());
  const auto insert = [&](SqlSession& session, absl::Time now,
                          AuditEntry& entry) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    BuildRecord stored = record;
    if (stored.end_time == absl::Time()) stored.end_time = now;
    PublishRequest request;
    request.version.mapping = record.mapping;
    request.build_id = record.build_id;
    PHIMAP_RETURN_IF_ERROR(CheckPublishableIn(tables, request, now));
    PHIMAP_RETURN_IF_ERROR(EndClaimOf(session, record.mapping, record.build_id, record.claimant));
    PHIMAP_RETURN_IF_ERROR(tables.DeleteBuild(record.mapping, record.build_id));
    PHIMAP_RETURN_IF_ERROR(tables.InsertBuild(stored));
    entry.mapping = record.mapping;
    entry.build_id = record.build_id;
    if (cancelled_by != nullptr) {
      AuditEntry cancel = entry;
      cancel.SetOrigin(*cancelled_by);
      PHIMAP_RETURN_IF_ERROR(AddAuditEntry(session, std::move(cancel), now));
    }
    entry.SetOutcome(record.error);
    return std::string();
  };
  const std::string end =
      absl::StrCat("the end of build ", record.build_id, " of ", Quoted(record.mapping));
  return Metered(metrics_, Op::kRecordFailedBuild, [&] {
    return Make(origin, end, absl::StrCat(end, " was recorded"), insert).status();
  });
}

// Reading names and builds.

absl::StatusOr<BuildRecord> Store::GetBuild(absl::string_view mapping, absl::string_view build_id) {
  return Read(Op::kGetBuild, [&](SqlSession& session) -> absl::StatusOr<BuildRecord> {
    PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
    return CatalogTables(session).GetBuild(mapping, build_id, now);
  });
}

absl::StatusOr<NameChanges> Store::ChangesSince(const Revision& since) {
  return Read(Op::kChangesSince,
              [&](SqlSession& session) { return CatalogTables(session).ChangesSince(since); });
}

absl::StatusOr<bool> Store::IsInHistory(const Revision& revision) {
  return Read(Op::kIsInHistory,
              [&](SqlSession& session) { return CatalogTables(session).IsInHistory(revision); });
}

absl::StatusOr<MappingRecord> Store::GetMapping(absl::string_view name) {
  return Read(Op::kGetMapping,
              [&](SqlSession& session) { return CatalogTables(session).GetMapping(name); });
}

absl::StatusOr<std::vector<MappingRecord>> Store::ListMappings(absl::string_view after, int limit) {
  return Read(
      Op::kListMappings, [&](SqlSession& session) -> absl::StatusOr<std::vector<MappingRecord>> {
        CatalogTables tables(session);
        // SQLite treats a negative limit as no limit, PostgreSQL as an error.
        PHIMAP_ASSIGN_OR_RETURN(
            std::vector<MappingRecord> mappings,
            tables.Mappings("m.name > $1 GROUP BY m.name ORDER BY m.name LIMIT $2",
                            {after, int64_t{std::max(limit, 0)}}));
        if (mappings.empty()) return mappings;
        PHIMAP_ASSIGN_OR_RETURN(std::vector<AliasRecord> aliases,
                                tables.AliasesBetween(mappings.front().name, mappings.back().name));
        auto mapping = mappings.begin();
        for (AliasRecord& alias : aliases) {
          while (mapping->name != alias.mapping) ++mapping;  // Both are sorted by name.
          mapping->aliases.push_back(std::move(alias));
        }
        return mappings;
      });
}

absl::StatusOr<VersionRecord> Store::GetVersion(absl::string_view mapping,
                                                std::optional<int64_t> number) {
  return Read(Op::kGetVersion, [&](SqlSession& session) {
    return CatalogTables(session).GetVersion(mapping, number);
  });
}

absl::StatusOr<std::vector<VersionRecord>> Store::ListVersions(absl::string_view mapping,
                                                               std::optional<int64_t> before,
                                                               int limit) {
  return Read(
      Op::kListVersions, [&](SqlSession& session) -> absl::StatusOr<std::vector<VersionRecord>> {
        CatalogTables tables(session);
        PHIMAP_RETURN_IF_ERROR(tables.GetMapping(mapping).status());
        const int64_t bound = before.value_or(std::numeric_limits<int64_t>::max());
        return tables.Versions("WHERE mapping = $1 AND number < $2 ORDER BY number DESC LIMIT $3",
                               {mapping, bound, int64_t{std::max(limit, 0)}});
      });
}

absl::StatusOr<VersionRecord> Store::GetAliasedVersion(absl::string_view mapping,
                                                       absl::string_view alias) {
  return Read(Op::kGetAliasedVersion, [&](SqlSession& session) -> absl::StatusOr<VersionRecord> {
    CatalogTables tables(session);
    PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> found,
                            tables.FindAlias(mapping, alias));
    if (found.has_value()) return tables.GetVersion(mapping, found->version);
    PHIMAP_RETURN_IF_ERROR(tables.GetMapping(mapping).status());
    return NoSuchAlias(mapping, alias, "reference");
  });
}

namespace {

// Maximum number of candidates that the error about an ambiguous digest lists.
constexpr int64_t kListedCandidates = 10;

// Returns the number of the version that the first digits of a digest mean.
absl::StatusOr<int64_t> NumberOfDigest(SqlSession& session, absl::string_view mapping,
                                       absl::string_view digest) {
  // `end` comes after every digest that begins with `digest`, and before every larger digest that
  // does not, because text compares byte by byte.
  const std::string end = absl::StrCat(digest, "g");
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session.Run("SELECT digest, max(number) FROM versions "
                                      "WHERE mapping = $1 AND digest >= $2 AND digest < $3 "
                                      "GROUP BY digest ORDER BY digest LIMIT $4",
                                      {mapping, digest, end, kListedCandidates + 1}));
  if (rows.size() == 1) return rows.Int(0, 1);
  if (rows.empty()) {
    PHIMAP_RETURN_IF_ERROR(CatalogTables(session).GetMapping(mapping).status());
    return NoSuchDigest(mapping, digest);
  }
  std::vector<std::string> candidates;
  for (size_t i = 0; i < rows.size() && i < kListedCandidates; ++i) {
    candidates.push_back(
        absl::StrCat(mapping, "@", rows.Int(i, 1), " (sha256:", rows.Text(i, 0), ")"));
  }
  return AmbiguousDigest(mapping, digest, candidates, rows.size() > kListedCandidates);
}

}  // namespace

absl::StatusOr<VersionRecord> Store::GetVersionByDigest(absl::string_view mapping,
                                                        absl::string_view digest) {
  return Read(Op::kGetVersionByDigest, [&](SqlSession& session) -> absl::StatusOr<VersionRecord> {
    PHIMAP_ASSIGN_OR_RETURN(const int64_t number, NumberOfDigest(session, mapping, digest));
    return CatalogTables(session).GetVersion(mapping, number);
  });
}

// Reading artifacts.

absl::StatusOr<int64_t> Store::ArtifactSizeBytes(absl::string_view digest) {
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<int64_t> size_bytes,
                          ReadOnce([&](SqlSession& session) {
                            return CatalogTables(session).ArtifactSizeBytes(digest);
                          }));
  if (size_bytes.has_value()) return *size_bytes;
  return MakeError(absl::StatusCode::kNotFound, reason::kArtifactNotFound, "",
                   absl::StrCat("no version has an artifact with digest \"", digest, "\""),
                   {{"digest", std::string(digest)}});
}

absl::Status Store::UnlessDeleted(absl::string_view digest, const absl::Status& error) {
  PHIMAP_RETURN_IF_ERROR(ArtifactSizeBytes(digest).status());
  return error;
}

absl::StatusOr<std::string> Store::ReadArtifact(absl::string_view digest) {
  return Metered(metrics_, Op::kReadArtifact, [&]() -> absl::StatusOr<std::string> {
    PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
    absl::StatusOr<std::string> artifact = blobs_->Read(digest, size_bytes);
    if (!artifact.ok()) return UnlessDeleted(digest, artifact.status());
    return artifact;
  });
}

absl::StatusOr<std::string> Store::ReadArtifactOf(const VersionRecord& version) {
  return Metered(metrics_, Op::kReadArtifact, [&]() -> absl::StatusOr<std::string> {
    absl::StatusOr<std::string> artifact =
        blobs_->Read(version.digest, version.artifact_size_bytes);
    if (!artifact.ok()) return UnlessDeleted(version.digest, artifact.status());
    return artifact;
  });
}

absl::StatusOr<std::string> Store::ReadArtifactRange(absl::string_view digest, int64_t offset,
                                                     int64_t bytes) {
  return Metered(metrics_, Op::kReadArtifactRange, [&]() -> absl::StatusOr<std::string> {
    PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
    if (offset >= size_bytes) return std::string();
    absl::StatusOr<std::string> part =
        blobs_->ReadRange(digest, size_bytes, offset, std::min(bytes, size_bytes - offset));
    if (!part.ok()) return UnlessDeleted(digest, part.status());
    return part;
  });
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> Store::OpenArtifact(absl::string_view digest) {
  return Metered(metrics_, Op::kOpenArtifact,
                 [&]() -> absl::StatusOr<std::unique_ptr<ArtifactReader>> {
                   PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, ArtifactSizeBytes(digest));
                   absl::StatusOr<std::unique_ptr<ArtifactReader>> reader =
                       blobs_->OpenReader(digest, size_bytes);
                   if (!reader.ok()) return UnlessDeleted(digest, reader.status());
                   return reader;
                 });
}

// Aliases.

namespace {

std::string NewEtag() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

bool EtagMatches(absl::string_view expected, const std::optional<AliasRecord>& current) {
  if (expected.empty()) return true;
  if (expected == kNoEtag) return !current.has_value();
  return current.has_value() && (expected == kAnyEtag || expected == current->etag);
}

absl::Status CheckEtag(absl::string_view mapping, absl::string_view alias,
                       absl::string_view expected, const std::optional<AliasRecord>& current) {
  if (EtagMatches(expected, current)) return absl::OkStatus();
  return EtagMismatch(mapping, alias, expected, current.has_value() ? &*current : nullptr);
}

// Points `moved` at its version and fills in its other fields and the entry of the audit, unless
// the alias already points there.
absl::Status MoveAlias(SqlSession& session, absl::string_view etag, AliasRecord& moved,
                       AuditEntry& entry) {
  CatalogTables tables(session);
  PHIMAP_ASSIGN_OR_RETURN(const VersionRecord aimed_at,
                          tables.GetVersion(moved.mapping, moved.version));
  moved.digest = aimed_at.digest;
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> current,
                          tables.FindAlias(moved.mapping, moved.name));
  PHIMAP_RETURN_IF_ERROR(CheckEtag(moved.mapping, moved.name, etag, current));
  if (current.has_value() && current->version == moved.version) {
    moved = *current;
    return absl::OkStatus();
  }
  entry.mapping = moved.mapping;
  entry.alias = moved.name;
  entry.version = moved.version;
  entry.digest = moved.digest;
  if (current.has_value()) {
    entry.previous_version = current->version;
    entry.previous_digest = current->digest;
    moved.previous_version = current->version;
    // From now on the alias no longer keeps the version that it would have been rolled back to.
    PHIMAP_RETURN_IF_ERROR(
        tables.UseVersion(moved.mapping, current->previous_version, moved.move_time));
  } else {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<AliasRecord> all,
                            tables.AliasesBetween(moved.mapping, moved.mapping));
    if (all.size() >= kMaxAliases) return TooManyAliases(moved.mapping);
  }
  PHIMAP_RETURN_IF_ERROR(
      session
          .Run(
              "INSERT INTO aliases (mapping, alias, version, previous_version, etag, move_time_us, "
              "moved_by) VALUES ($1, $2, $3, $4, $5, $6, $7) "
              "ON CONFLICT (mapping, alias) DO UPDATE SET "
              "version = excluded.version, previous_version = excluded.previous_version, "
              "etag = excluded.etag, move_time_us = excluded.move_time_us, "
              "moved_by = excluded.moved_by",
              {moved.mapping, moved.name, moved.version, moved.previous_version, moved.etag,
               absl::ToUnixMicros(moved.move_time), moved.moved_by})
          .status());
  return tables.CountChange(moved.mapping);
}

}  // namespace

absl::StatusOr<AliasRecord> Store::SetAlias(absl::string_view mapping, absl::string_view alias,
                                            int64_t version, absl::string_view etag,
                                            const ChangeOrigin& origin) {
  const std::string new_etag = NewEtag();
  const auto move = [&](SqlSession& session, absl::Time now,
                        AuditEntry& entry) -> absl::StatusOr<std::string> {
    AliasRecord moved{
        .mapping = std::string(mapping), .name = std::string(alias), .version = version};
    moved.etag = new_etag;
    moved.move_time = now;
    moved.moved_by = origin.principal;
    PHIMAP_RETURN_IF_ERROR(MoveAlias(session, etag, moved, entry));
    return TextOf(moved);
  };
  return Metered(metrics_, Op::kSetAlias, [&]() -> absl::StatusOr<AliasRecord> {
    PHIMAP_ASSIGN_OR_RETURN(
        const std::string outcome,
        Make(origin,
             absl::StrCat("set alias ", mapping, "@", alias, " to ", version, " if ", Quoted(etag)),
             absl::StrCat(mapping, "@", alias, " was moved"), move));
    return AliasFrom(outcome);
  });
}

absl::Status Store::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                absl::string_view etag, const ChangeOrigin& origin) {
  const auto remove = [&](SqlSession& session, absl::Time now,
                          AuditEntry& entry) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    PHIMAP_RETURN_IF_ERROR(tables.GetMapping(mapping).status());
    PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> current,
                            tables.FindAlias(mapping, alias));
    PHIMAP_RETURN_IF_ERROR(CheckEtag(mapping, alias, etag, current));
    if (!current.has_value()) return NoSuchAlias(mapping, alias, "alias");
    PHIMAP_RETURN_IF_ERROR(
        session.Run("DELETE FROM aliases WHERE mapping = $1 AND alias = $2", {mapping, alias})
            .status());
    for (const int64_t number : {current->version, current->previous_version}) {
      PHIMAP_RETURN_IF_ERROR(tables.UseVersion(mapping, number, now));
    }
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(mapping));
    entry.mapping = current->mapping;
    entry.alias = current->name;
    entry.previous_version = current->version;
    entry.previous_digest = current->digest;
    return std::string();
  };
  return Metered(metrics_, Op::kDeleteAlias, [&] {
    return Make(origin, absl::StrCat("delete alias ", mapping, "@", alias, " if ", Quoted(etag)),
                absl::StrCat(mapping, "@", alias, " was deleted"), remove)
        .status();
  });
}

// Deleting versions and mappings.

namespace {

// Checks that no alias prevents deleting a version.
absl::Status CheckUnused(CatalogTables& tables, absl::string_view mapping, int64_t number,
                         Rollbacks rollbacks) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<AliasRecord> aliases,
                          tables.AliasesBetween(mapping, mapping));
  std::vector<AliasRecord> there;
  std::vector<AliasRecord> came_from;
  for (const AliasRecord& alias : aliases) {
    if (alias.version == number) there.push_back(alias);
    if (alias.previous_version == number) came_from.push_back(alias);
  }
  if (!there.empty()) return InUse(mapping, number, there);
  if (rollbacks == Rollbacks::kKeep && !came_from.empty()) {
    return RolledBackTo(mapping, number, came_from);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Store::DeleteVersion(absl::string_view mapping, int64_t number, Rollbacks rollbacks,
                                  const ChangeOrigin& origin) {
  const auto find = [&](SqlSession&) { return absl::StatusOr<int64_t>(number); };
  return DeleteFound(mapping, absl::StrCat(number), find, rollbacks, origin).status();
}

absl::StatusOr<int64_t> Store::DeleteVersionByDigest(absl::string_view mapping,
                                                     absl::string_view digest, Rollbacks rollbacks,
                                                     const ChangeOrigin& origin) {
  const auto find = [&](SqlSession& session) { return NumberOfDigest(session, mapping, digest); };
  PHIMAP_ASSIGN_OR_RETURN(
      const std::string outcome,
      DeleteFound(mapping, absl::StrCat("sha256:", digest), find, rollbacks, origin));
  int64_t number = 0;
  PHIMAP_CHECK(absl::SimpleAtoi(outcome, &number));
  return number;
}

absl::StatusOr<std::string> Store::DeleteFound(
    absl::string_view mapping, const std::string& which,
    absl::FunctionRef<absl::StatusOr<int64_t>(SqlSession&)> find, Rollbacks rollbacks,
    const ChangeOrigin& origin) {
  const auto remove = [&](SqlSession& session, absl::Time,
                          AuditEntry& entry) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    PHIMAP_ASSIGN_OR_RETURN(const int64_t number, find(session));
    PHIMAP_ASSIGN_OR_RETURN(const VersionRecord version, tables.GetVersion(mapping, number));
    PHIMAP_RETURN_IF_ERROR(CheckUnused(tables, mapping, number, rollbacks));
    PHIMAP_RETURN_IF_ERROR(tables.DeleteVersions(mapping, number));
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(mapping));
    NoteDeleted(version, entry);
    return absl::StrCat(number);
  };
  return Metered(metrics_, Op::kDeleteVersion, [&]() -> absl::StatusOr<std::string> {
    std::string outcome;
    PHIMAP_RETURN_IF_ERROR(Delete([&]() -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(
          outcome,
          Make(origin,
               absl::StrCat("delete version ", mapping, "@", which,
                            rollbacks == Rollbacks::kGiveUp ? " and rollbacks to it" : ""),
               absl::StrCat("version ", which, " of ", Quoted(mapping), " was deleted"), remove));
      return absl::OkStatus();
    }));
    return outcome;
  });
}

namespace {

// Number of versions of a deleted mapping whose digests its audit entry has.
constexpr int64_t kMostVersionsInWords = 100;

// Returns "with 2 versions: 1 sha256:4be6…, 3 sha256:9c21…", the newest last.
absl::StatusOr<std::string> VersionsInWords(SqlSession& session, const MappingRecord& mapping) {
  std::string words = absl::StrCat("with ", CountOf(mapping.version_count, "version"));
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Run("SELECT number, digest FROM (SELECT number, digest FROM versions WHERE mapping = "
                  "$1 ORDER BY number DESC LIMIT $2) newest ORDER BY number",
                  {mapping.name, kMostVersionsInWords}));
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StrAppend(&words, i == 0 ? ": " : ", ", rows.Int(i, 0), " sha256:", rows.Text(i, 1));
  }
  return words;
}

}  // namespace

absl::Status Store::DeleteMapping(absl::string_view mapping, Occupied occupied,
                                  const ChangeOrigin& origin) {
  const auto remove = [&](SqlSession& session, absl::Time,
                          AuditEntry& entry) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    PHIMAP_ASSIGN_OR_RETURN(const MappingRecord record, tables.GetMapping(mapping));
    if (!record.aliases.empty()) return InUse(mapping, std::nullopt, record.aliases);
    if (occupied == Occupied::kRefuse && record.version_count > 0) {
      return NotEmpty(mapping, record.version_count);
    }
    PHIMAP_ASSIGN_OR_RETURN(entry.detail, VersionsInWords(session, record));
    PHIMAP_RETURN_IF_ERROR(tables.DeleteVersions(mapping, std::nullopt));
    PHIMAP_RETURN_IF_ERROR(tables.MarkMappingDeleted(mapping));
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(mapping));
    entry.mapping = record.name;
    entry.previous_version = record.newest_version;
    return std::string();
  };
  return Metered(metrics_, Op::kDeleteMapping, [&] {
    return Delete([&] {
      return Make(origin,
                  absl::StrCat("delete mapping ", mapping,
                               occupied == Occupied::kRefuse ? " if it is empty" : ""),
                  absl::StrCat("mapping ", Quoted(mapping), " was deleted"), remove)
          .status();
    });
  });
}

// How long versions live.

namespace {

// Maximum number of expired versions that one transaction deletes, so that other writers do not
// wait long.
constexpr int64_t kExpiredAtOnce = 100;

// SQL condition on a row of `versions`: it has expired at time $1. The first comparison uses the
// index on versions with a ttl.
constexpr char kIsExpired[] =
    "expire_time_us > 0 AND expire_time_us <= $1 AND NOT EXISTS "
    "(SELECT 1 FROM aliases a WHERE a.mapping = versions.mapping AND "
    "(a.version = versions.number OR a.previous_version = versions.number))";

std::vector<VersionName> NamesIn(const SqlRows& rows) {
  std::vector<VersionName> names;
  names.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) names.push_back({rows.Text(i, 0), rows.Int(i, 1)});
  std::sort(names.begin(), names.end());
  return names;
}

// Deletes `versions`, and the mappings that have none left.
absl::Status DeleteAll(SqlSession& session, const std::vector<VersionName>& versions,
                       absl::Time now) {
  CatalogTables tables(session);
  for (const VersionName& version : versions) {
    PHIMAP_ASSIGN_OR_RETURN(const VersionRecord record,
                            tables.GetVersion(version.mapping, version.number));
    AuditEntry entry;
    entry.method = "expiry";
    NoteDeleted(record, entry);
    PHIMAP_RETURN_IF_ERROR(AddAuditEntry(session, std::move(entry), now));
    PHIMAP_RETURN_IF_ERROR(tables.DeleteVersions(version.mapping, version.number));
    PHIMAP_ASSIGN_OR_RETURN(const int64_t newest, tables.NewestVersion(version.mapping));
    if (newest == 0) PHIMAP_RETURN_IF_ERROR(tables.MarkMappingDeleted(version.mapping));
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(version.mapping));
  }
  return absl::OkStatus();
}

// KeepVersion may only extend a version's life: callers that may not delete versions must not be
// able to shorten their lives.
absl::Status CheckLivesNoShorter(const VersionRecord& version, absl::Duration ttl, absl::Time now) {
  // While an alias keeps the version alive, it has no expiry time to compare with.
  const bool later =
      version.expire_time != absl::InfiniteFuture() && now + ttl >= version.expire_time;
  if (ttl >= version.ttl || later) return absl::OkStatus();
  const std::string life = version.ttl == absl::InfiniteDuration()
                               ? "for ever"
                               : absl::StrCat(CountOf(absl::ToInt64Seconds(version.ttl), "second"),
                                              " after its last use");
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kTtlTooShort, "ttl",
                   absl::StrCat(version.mapping, "@", version.number, " lives ", life,
                                ", and that can only be extended; got ",
                                CountOf(absl::ToInt64Seconds(ttl), "second"),
                                ". To remove the version sooner, delete it"),
                   {{"mapping", version.mapping},
                    {"version", absl::StrCat(version.number)},
                    {"actual", absl::StrCat(absl::ToInt64Seconds(ttl))}});
}

}  // namespace

absl::StatusOr<VersionRecord> Store::KeepVersion(absl::string_view mapping, int64_t number,
                                                 absl::Duration ttl, const ChangeOrigin& origin) {
  const auto keep = [&](SqlSession& session, absl::Time now,
                        AuditEntry& entry) -> absl::StatusOr<std::string> {
    // The check is in the same transaction, because another call may just have extended the life.
    PHIMAP_ASSIGN_OR_RETURN(VersionRecord version,
                            CatalogTables(session).GetVersion(mapping, number));
    PHIMAP_RETURN_IF_ERROR(CheckLivesNoShorter(version, ttl, now));
    PHIMAP_RETURN_IF_ERROR(CatalogTables(session).SetTtl(mapping, number, ttl, now));
    PHIMAP_ASSIGN_OR_RETURN(version, CatalogTables(session).GetVersion(mapping, number));
    NoteAdded(version, entry);
    entry.previous_version = version.number;
    entry.previous_digest = version.digest;
    entry.detail = absl::StrCat("lives for ", absl::FormatDuration(ttl), " after its last use");
    return TextOf(version);
  };
  return Metered(metrics_, Op::kKeepVersion, [&]() -> absl::StatusOr<VersionRecord> {
    PHIMAP_ASSIGN_OR_RETURN(
        const std::string outcome,
        Make(
            origin,
            absl::StrCat("keep version ", mapping, "@", number, " for ", absl::FormatDuration(ttl)),
            absl::StrCat("the ttl of version ", number, " of ", Quoted(mapping), " was set"),
            keep));
    return VersionFrom(outcome);
  });
}

absl::Status Store::RecordUses(const std::vector<VersionName>& used) {
  return Metered(metrics_, Op::kRecordUses, [&]() -> absl::Status {
    // The versions whose expiry a use now would postpone by a tenth of their ttl or more, by name
    // and number.
    PHIMAP_ASSIGN_OR_RETURN(
        const std::vector<VersionName> worth,
        ReadOnce([&](SqlSession& session) -> absl::StatusOr<std::vector<VersionName>> {
          PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
          PHIMAP_ASSIGN_OR_RETURN(
              const SqlRows rows,
              session.Run(
                  absl::StrCat("SELECT mapping, number FROM versions WHERE expire_time_us > 0 "
                               "AND expire_time_us <= $1 + ttl_us - ttl_us / ",
                               kRecordedShareOfTtl),
                  {absl::ToUnixMicros(now)}));
          return NamesIn(rows);
        }));
    std::vector<VersionName> to_record;
    for (const VersionName& version : used) {
      if (std::binary_search(worth.begin(), worth.end(), version)) to_record.push_back(version);
    }
    if (to_record.empty()) return absl::OkStatus();
    return database_->WriteAside([&](SqlSession& session) -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
      CatalogTables tables(session);
      for (const VersionName& version : to_record) {
        PHIMAP_RETURN_IF_ERROR(tables.UseVersion(version.mapping, version.number, now));
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::vector<VersionName>> Store::DeleteSomeExpired() {
  PHIMAP_ASSIGN_OR_RETURN(
      const bool any, ReadOnce([&](SqlSession& session) -> absl::StatusOr<bool> {
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        PHIMAP_ASSIGN_OR_RETURN(
            const SqlRows rows,
            session.Run(absl::StrCat("SELECT 1 FROM versions WHERE ", kIsExpired, " LIMIT 1"),
                        {absl::ToUnixMicros(now)}));
        return !rows.empty();
      }));
  std::vector<VersionName> deleted;
  if (!any || !clock_->trusted()) return deleted;
  if (check_audit_) PHIMAP_RETURN_IF_ERROR(check_audit_());
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        deleted.clear();
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        if (!clock_->trusted()) return absl::OkStatus();
        // Within this transaction, no other process can postpone the expiry of these versions. The
        // update locks the rows, in databases that have row locks, because uses are recorded
        // concurrently with other writers (SqlDatabase::WriteAside). The UPDATE repeats the
        // condition of its SELECT, to check again rows that another transaction has just changed.
        PHIMAP_ASSIGN_OR_RETURN(
            const SqlRows rows,
            session.Run(
                absl::StrCat("UPDATE versions SET expire_time_us = expire_time_us WHERE ",
                             kIsExpired,
                             " AND (mapping, number) IN (SELECT mapping, number FROM versions "
                             "WHERE ",
                             kIsExpired, " ORDER BY mapping, number LIMIT $2) ",
                             "RETURNING mapping, number"),
                {absl::ToUnixMicros(now), kExpiredAtOnce}));
        deleted = NamesIn(rows);
        return DeleteAll(session, deleted, now);
      },
      // Versions that were not deleted will be found expired again.
      [](SqlSession&) { return true; }, "expired versions were deleted"));
  if (audit_changed_) audit_changed_();
  return deleted;
}

absl::StatusOr<std::vector<VersionName>> Store::DeleteExpired() {
  return Metered(metrics_, Op::kDeleteExpired, [&]() -> absl::StatusOr<std::vector<VersionName>> {
    std::vector<VersionName> deleted;
    PHIMAP_RETURN_IF_ERROR(Delete([&]() -> absl::Status {
      deleted.clear();
      while (true) {
        const absl::StatusOr<std::vector<VersionName>> some = DeleteSomeExpired();
        // The remaining versions are deleted next time. The caller must learn of those already
        // deleted.
        if (!some.ok() && deleted.empty()) return some.status();
        if (!some.ok() || some->empty()) return absl::OkStatus();
        deleted.insert(deleted.end(), some->begin(), some->end());
      }
    }));
    return deleted;
  });
}

}  // namespace phimap
