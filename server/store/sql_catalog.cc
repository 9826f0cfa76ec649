#include "server/store/sql_catalog.h"

#include <cstdio>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/plan/artifact.h"
#include "core/plan/plan.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/catalog_errors.h"
#include "server/store/fleet_member.h"
#include "server/store/operation_log.h"
#include "server/store/record_text.h"
#include "server/store/sql_build_claims.h"
#include "server/store/version_expiry.h"

namespace phimap {
namespace {

// Returns the time at which a version that is used now expires, rounded to microseconds, so that
// the value returned now equals the one that is later read from the database.
absl::Time ExpiryAfter(absl::Duration ttl, absl::Time now) {
  if (ttl == absl::InfiniteDuration()) return absl::InfiniteFuture();
  return absl::FromUnixMicros(absl::ToUnixMicros(now + ttl));
}

std::string NewEtag() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

absl::Status CheckPublishableIn(CatalogTables& tables, const PublishRequest& request,
                                absl::Time now) {
  const std::string& mapping = request.version.mapping;
  PHIMAP_ASSIGN_OR_RETURN(const bool known, tables.HasBuild(mapping, request.build_id, now));
  if (known) {
    return MakeError(
        absl::StatusCode::kAlreadyExists, "BUILD_EXISTS", "build_id",
        absl::StrCat("build ", request.build_id, " of \"", mapping, "\" has already ended"),
        {{"mapping", mapping}, {"build_id", request.build_id}});
  }
  if (!request.expected_newest.has_value()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const int64_t newest, tables.NewestVersion(mapping));
  if (newest == *request.expected_newest) return absl::OkStatus();
  return MakeError(absl::StatusCode::kAborted, "NEWEST_VERSION_CHANGED", "",
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

// Makes an imported version permanent, independently of the ttl it was built with.
absl::Status KeepForEver(SqlSession& session, VersionRecord& version, absl::Time now) {
  if (version.ttl == absl::InfiniteDuration()) return absl::OkStatus();
  version.ttl = absl::InfiniteDuration();
  version.expire_time = absl::InfiniteFuture();
  return VersionExpiry(session).SetTtl(version.mapping, version.number, version.ttl, now);
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

// Points `moved` at its version and fills in its other fields, unless the alias already points
// there.
absl::Status MoveAlias(SqlSession& session, absl::string_view etag, AliasRecord& moved) {
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
  if (current.has_value()) {
    moved.previous_version = current->version;
    // From now on the alias no longer keeps the version that it would have been rolled back to.
    PHIMAP_RETURN_IF_ERROR(
        VersionExpiry(session).Use(moved.mapping, current->previous_version, moved.move_time));
  } else {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<AliasRecord> all,
                            tables.AliasesBetween(moved.mapping, moved.mapping));
    if (all.size() >= kMaxAliases) return TooManyAliases(moved.mapping);
  }
  PHIMAP_RETURN_IF_ERROR(tables.PutAlias(moved));
  return tables.CountChange(moved.mapping);
}

}  // namespace

template <typename T, typename Function>
absl::StatusOr<T> SqlCatalog::ReadTables(const Function& read) {
  T result{};
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    CatalogTables tables(session);
    PHIMAP_ASSIGN_OR_RETURN(result, read(tables));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<std::string> SqlCatalog::StoreId() {
  return ReadTables<std::string>([](CatalogTables& tables) { return tables.StoreId(); });
}

absl::StatusOr<NameChanges> SqlCatalog::ChangesSince(const Revision& since) {
  return ReadTables<NameChanges>([&](CatalogTables& tables) { return tables.ChangesSince(since); });
}

absl::StatusOr<bool> SqlCatalog::IsInHistory(const Revision& revision) {
  return ReadTables<bool>([&](CatalogTables& tables) { return tables.IsInHistory(revision); });
}

absl::StatusOr<bool> SqlCatalog::IsLogged(SqlSession& session, absl::string_view operation_id,
                                          const Revision& began_at) {
  PHIMAP_ASSIGN_OR_RETURN(const bool same, CatalogTables(session).IsInHistory(began_at));
  if (!same) return absl::UnavailableError("the database was restored or failed over meanwhile");
  return OperationLog(session).Contains(operation_id);
}

absl::StatusOr<std::string> SqlCatalog::Make(absl::string_view operation_id, std::string request,
                                             std::string what, Change change) {
  const Operation operation{
      .id = operation_id.empty() ? NewOperationId() : std::string(operation_id),
      .request = std::move(request),
      .what = std::move(what)};
  Revision began_at;
  std::string outcome;
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_ASSIGN_OR_RETURN(began_at, CatalogTables(session).CurrentRevision());
        OperationLog log(session);
        PHIMAP_ASSIGN_OR_RETURN(std::optional<std::string> logged, log.Find(operation));
        if (logged.has_value()) {
          outcome = *std::move(logged);
          return absl::OkStatus();
        }
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        PHIMAP_ASSIGN_OR_RETURN(outcome, change(session, now));
        PHIMAP_RETURN_IF_ERROR(log.Add(operation, outcome, now));
        return PruneIn(session, now).status();
      },
      [&](SqlSession& session) { return IsLogged(session, operation.id, began_at); },
      operation.what));
  return outcome;
}

absl::StatusOr<bool> SqlCatalog::HasMappings() {
  return ReadTables<bool>([](CatalogTables& tables) { return tables.HasMappings(); });
}

absl::Status SqlCatalog::UseArtifact(SqlSession& session, absl::string_view digest) {
  if (blobs_ != nullptr) {
    PHIMAP_ASSIGN_OR_RETURN(const bool there, blobs_->Contains(session, digest));
    if (!there) return ArtifactRemoved(digest);
  }
  return CatalogTables(session).Unlist(digest);
}

absl::StatusOr<std::optional<int64_t>> SqlCatalog::ArtifactSizeBytes(absl::string_view digest) {
  return ReadTables<std::optional<int64_t>>(
      [&](CatalogTables& tables) { return tables.ArtifactSizeBytes(digest); });
}

absl::Status SqlCatalog::CheckPublishable(const PublishRequest& request) {
  return database_->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
    CatalogTables tables(session);
    return CheckPublishableIn(tables, request, now);
  });
}

absl::StatusOr<VersionRecord> SqlCatalog::InsertVersion(const PublishRequest& request,
                                                        absl::string_view digest,
                                                        int64_t size_bytes) {
  VersionRecord version = request.version;
  version.digest = std::string(digest);
  version.artifact_size_bytes = size_bytes;
  const auto insert = [&](SqlSession& session, absl::Time now) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    version.create_time = now;
    version.expire_time = ExpiryAfter(version.ttl, now);
    PHIMAP_RETURN_IF_ERROR(CheckPublishableIn(tables, request, now));
    PHIMAP_RETURN_IF_ERROR(CheckAllRead(session, version.artifact_format, kArithmetic));
    PHIMAP_RETURN_IF_ERROR(
        EndClaimOf(session, version.mapping, request.build_id, request.claimant));
    PHIMAP_RETURN_IF_ERROR(UseArtifact(session, digest));
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
    return std::string();
  };
  const std::string build =
      absl::StrCat("build ", request.build_id, " of ", Quoted(version.mapping));
  PHIMAP_RETURN_IF_ERROR(
      Make("", build, absl::StrCat(build, " was stored (GetBuild shows it)"), insert).status());
  return version;
}

absl::Status SqlCatalog::InsertFailedBuild(const BuildRecord& record) {
  const auto insert = [&](SqlSession& session, absl::Time now) -> absl::StatusOr<std::string> {
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
    return std::string();
  };
  const std::string end =
      absl::StrCat("the end of build ", record.build_id, " of ", Quoted(record.mapping));
  return Make("", end, absl::StrCat(end, " was recorded"), insert).status();
}

absl::StatusOr<VersionRecord> SqlCatalog::ImportVersion(const VersionRecord& imported,
                                                        absl::string_view digest,
                                                        int64_t size_bytes) {
  const auto insert = [&](SqlSession& session, absl::Time now) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    PHIMAP_ASSIGN_OR_RETURN(std::optional<VersionRecord> there,
                            tables.FindDigest(imported.mapping, digest));
    if (there.has_value()) {
      PHIMAP_RETURN_IF_ERROR(KeepForEver(session, *there, now));
      return TextOf(*there);
    }
    PHIMAP_RETURN_IF_ERROR(CheckAllRead(session, imported.artifact_format, kArithmetic));
    PHIMAP_RETURN_IF_ERROR(UseArtifact(session, digest));
    VersionRecord version = imported;
    version.digest = std::string(digest);
    version.artifact_size_bytes = size_bytes;
    version.create_time = now;
    version.imported = true;
    PHIMAP_ASSIGN_OR_RETURN(version.number, tables.TakeNumber(version.mapping, now));
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(version.mapping));
    PHIMAP_RETURN_IF_ERROR(tables.InsertVersion(version));
    return TextOf(version);
  };
  PHIMAP_ASSIGN_OR_RETURN(const std::string outcome,
                          Make("", absl::StrCat("import ", imported.mapping, " ", digest),
                               absl::StrCat("the artifact was stored as a version of ",
                                            Quoted(imported.mapping), " (if not, import it again)"),
                               insert));
  return VersionFrom(outcome);
}

absl::StatusOr<int64_t> SqlCatalog::PruneIn(SqlSession& session, absl::Time now) const {
  if (!clock_->trusted()) return 0;
  PHIMAP_RETURN_IF_ERROR(OperationLog(session).Prune(now));
  return CatalogTables(session).DeleteExpiredBuilds(now);
}

absl::StatusOr<int64_t> SqlCatalog::Prune() {
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

absl::StatusOr<BuildRecord> SqlCatalog::GetBuild(absl::string_view mapping,
                                                 absl::string_view build_id) {
  BuildRecord build;
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
    PHIMAP_ASSIGN_OR_RETURN(build, CatalogTables(session).GetBuild(mapping, build_id, now));
    return absl::OkStatus();
  }));
  return build;
}

absl::StatusOr<MappingRecord> SqlCatalog::GetMapping(absl::string_view name) {
  return ReadTables<MappingRecord>([&](CatalogTables& tables) { return tables.GetMapping(name); });
}

absl::StatusOr<std::vector<MappingRecord>> SqlCatalog::ListMappings(absl::string_view after,
                                                                    int limit) {
  return ReadTables<std::vector<MappingRecord>>(
      [&](CatalogTables& tables) { return tables.ListMappings(after, limit); });
}

absl::StatusOr<VersionRecord> SqlCatalog::GetVersion(absl::string_view mapping,
                                                     std::optional<int64_t> number) {
  return ReadTables<VersionRecord>(
      [&](CatalogTables& tables) { return tables.GetVersion(mapping, number); });
}

absl::StatusOr<std::vector<VersionRecord>> SqlCatalog::ListVersions(absl::string_view mapping,
                                                                    std::optional<int64_t> before,
                                                                    int limit) {
  return ReadTables<std::vector<VersionRecord>>(
      [&](CatalogTables& tables) { return tables.ListVersions(mapping, before, limit); });
}

absl::StatusOr<VersionRecord> SqlCatalog::GetAliasedVersion(absl::string_view mapping,
                                                            absl::string_view alias) {
  return ReadTables<VersionRecord>([&](CatalogTables& tables) -> absl::StatusOr<VersionRecord> {
    PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> found,
                            tables.FindAlias(mapping, alias));
    if (found.has_value()) return tables.GetVersion(mapping, found->version);
    PHIMAP_RETURN_IF_ERROR(tables.GetMapping(mapping).status());
    return NoSuchAlias(mapping, alias, "reference");
  });
}

absl::StatusOr<VersionRecord> SqlCatalog::GetVersionByDigest(absl::string_view mapping,
                                                             absl::string_view digest) {
  return ReadTables<VersionRecord>(
      [&](CatalogTables& tables) { return tables.GetVersionByDigest(mapping, digest); });
}

absl::StatusOr<AliasRecord> SqlCatalog::SetAlias(absl::string_view mapping, absl::string_view alias,
                                                 int64_t version, absl::string_view etag,
                                                 absl::string_view operation_id) {
  const std::string new_etag = NewEtag();
  const auto move = [&](SqlSession& session, absl::Time now) -> absl::StatusOr<std::string> {
    AliasRecord moved{
        .mapping = std::string(mapping), .name = std::string(alias), .version = version};
    moved.etag = new_etag;
    moved.move_time = now;
    PHIMAP_RETURN_IF_ERROR(MoveAlias(session, etag, moved));
    return TextOf(moved);
  };
  PHIMAP_ASSIGN_OR_RETURN(
      const std::string outcome,
      Make(operation_id,
           absl::StrCat("set alias ", mapping, "@", alias, " to ", version, " if ", Quoted(etag)),
           absl::StrCat(mapping, "@", alias, " was moved"), move));
  return AliasFrom(outcome);
}

absl::Status SqlCatalog::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                     absl::string_view etag, absl::string_view operation_id) {
  const auto remove = [&](SqlSession& session, absl::Time now) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    PHIMAP_RETURN_IF_ERROR(tables.GetMapping(mapping).status());
    PHIMAP_ASSIGN_OR_RETURN(const std::optional<AliasRecord> current,
                            tables.FindAlias(mapping, alias));
    PHIMAP_RETURN_IF_ERROR(CheckEtag(mapping, alias, etag, current));
    if (!current.has_value()) return NoSuchAlias(mapping, alias, "alias");
    PHIMAP_RETURN_IF_ERROR(tables.DeleteAlias(mapping, alias));
    VersionExpiry expiry(session);
    for (const int64_t number : {current->version, current->previous_version}) {
      PHIMAP_RETURN_IF_ERROR(expiry.Use(mapping, number, now));
    }
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(mapping));
    return std::string();
  };
  return Make(operation_id,
              absl::StrCat("delete alias ", mapping, "@", alias, " if ", Quoted(etag)),
              absl::StrCat(mapping, "@", alias, " was deleted"), remove)
      .status();
}

absl::Status SqlCatalog::DeleteVersion(absl::string_view mapping, int64_t number,
                                       Rollbacks rollbacks, absl::string_view operation_id) {
  const auto remove = [&](SqlSession& session, absl::Time) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    PHIMAP_RETURN_IF_ERROR(tables.GetVersion(mapping, number).status());
    PHIMAP_RETURN_IF_ERROR(CheckUnused(tables, mapping, number, rollbacks));
    PHIMAP_RETURN_IF_ERROR(tables.DeleteVersions(mapping, number));
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(mapping));
    return std::string();
  };
  return Make(operation_id,
              absl::StrCat("delete version ", mapping, "@", number,
                           rollbacks == Rollbacks::kGiveUp ? " and rollbacks to it" : ""),
              absl::StrCat("version ", number, " of ", Quoted(mapping), " was deleted"), remove)
      .status();
}

absl::Status SqlCatalog::DeleteMapping(absl::string_view mapping, Occupied occupied,
                                       absl::string_view operation_id) {
  const auto remove = [&](SqlSession& session, absl::Time) -> absl::StatusOr<std::string> {
    CatalogTables tables(session);
    PHIMAP_ASSIGN_OR_RETURN(const MappingRecord record, tables.GetMapping(mapping));
    if (!record.aliases.empty()) return InUse(mapping, std::nullopt, record.aliases);
    if (occupied == Occupied::kRefuse && record.version_count > 0) {
      return NotEmpty(mapping, record.version_count);
    }
    PHIMAP_RETURN_IF_ERROR(tables.DeleteVersions(mapping, std::nullopt));
    PHIMAP_RETURN_IF_ERROR(tables.MarkMappingDeleted(mapping));
    PHIMAP_RETURN_IF_ERROR(tables.CountChange(mapping));
    return std::string();
  };
  return Make(operation_id,
              absl::StrCat("delete mapping ", mapping,
                           occupied == Occupied::kRefuse ? " if it is empty" : ""),
              absl::StrCat("mapping ", Quoted(mapping), " was deleted"), remove)
      .status();
}

}  // namespace phimap
