// The part of SqlCatalog that is about how long versions live.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/record_text.h"
#include "server/store/sql_catalog.h"
#include "server/store/version_expiry.h"

namespace phimap {
namespace {

// Maximum number of expired versions that one transaction deletes, so that other writers do not
// wait long.
constexpr int64_t kExpiredAtOnce = 100;

// Deletes `versions`, and the mappings that have none left.
absl::Status DeleteAll(SqlSession& session, const std::vector<VersionName>& versions) {
  CatalogTables tables(session);
  for (const VersionName& version : versions) {
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
  const std::string life =
      version.ttl == absl::InfiniteDuration()
          ? "for ever"
          : absl::StrCat(absl::ToInt64Seconds(version.ttl), " seconds after its last use");
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "TTL_TOO_SHORT", "ttl",
      absl::StrCat(version.mapping, "@", version.number, " lives ", life,
                   ", and KeepVersion can only extend that; got ", absl::ToInt64Seconds(ttl),
                   " seconds. To remove the version sooner, delete it"),
      {{"mapping", version.mapping},
       {"version", absl::StrCat(version.number)},
       {"actual", absl::StrCat(absl::ToInt64Seconds(ttl))}});
}

}  // namespace

absl::StatusOr<VersionRecord> SqlCatalog::KeepVersion(absl::string_view mapping, int64_t number,
                                                      absl::Duration ttl,
                                                      absl::string_view operation_id) {
  const auto keep = [&](SqlSession& session, absl::Time now) -> absl::StatusOr<std::string> {
    // The check is in the same transaction, because another call may just have extended the life.
    PHIMAP_ASSIGN_OR_RETURN(VersionRecord version,
                            CatalogTables(session).GetVersion(mapping, number));
    PHIMAP_RETURN_IF_ERROR(CheckLivesNoShorter(version, ttl, now));
    PHIMAP_RETURN_IF_ERROR(VersionExpiry(session).SetTtl(mapping, number, ttl, now));
    PHIMAP_ASSIGN_OR_RETURN(version, CatalogTables(session).GetVersion(mapping, number));
    return TextOf(version);
  };
  PHIMAP_ASSIGN_OR_RETURN(
      const std::string outcome,
      Make(operation_id,
           absl::StrCat("keep version ", mapping, "@", number, " for ", absl::FormatDuration(ttl)),
           absl::StrCat("the ttl of version ", number, " of ", Quoted(mapping), " was set"), keep));
  return VersionFrom(outcome);
}

absl::Status SqlCatalog::RecordUses(const std::vector<VersionName>& used) {
  std::vector<VersionName> worth;
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
    PHIMAP_ASSIGN_OR_RETURN(worth, VersionExpiry(session).WorthRecording(now));
    return absl::OkStatus();
  }));
  std::vector<VersionName> to_record;
  for (const VersionName& version : used) {
    if (std::binary_search(worth.begin(), worth.end(), version)) to_record.push_back(version);
  }
  if (to_record.empty()) return absl::OkStatus();
  return database_->WriteAside([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
    VersionExpiry expiry(session);
    for (const VersionName& version : to_record) {
      PHIMAP_RETURN_IF_ERROR(expiry.Use(version.mapping, version.number, now));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<VersionName>> SqlCatalog::DeleteSomeExpired() {
  bool any = false;
  PHIMAP_RETURN_IF_ERROR(database_->Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
    PHIMAP_ASSIGN_OR_RETURN(any, VersionExpiry(session).AnyExpired(now));
    return absl::OkStatus();
  }));
  std::vector<VersionName> deleted;
  if (!any || !clock_->trusted()) return deleted;
  PHIMAP_RETURN_IF_ERROR(database_->Write(
      [&](SqlSession& session) -> absl::Status {
        deleted.clear();
        PHIMAP_ASSIGN_OR_RETURN(const absl::Time now, clock_->Now(session));
        if (!clock_->trusted()) return absl::OkStatus();
        PHIMAP_ASSIGN_OR_RETURN(deleted, VersionExpiry(session).TakeExpired(now, kExpiredAtOnce));
        return DeleteAll(session, deleted);
      },
      // Versions that were not deleted will be found expired again.
      [](SqlSession&) { return true; }, "expired versions were deleted"));
  return deleted;
}

absl::StatusOr<std::vector<VersionName>> SqlCatalog::DeleteExpired() {
  std::vector<VersionName> deleted;
  while (true) {
    const absl::StatusOr<std::vector<VersionName>> some = DeleteSomeExpired();
    // The remaining versions are deleted next time. The caller must learn of those already deleted.
    if (!some.ok() && deleted.empty()) return some;
    if (!some.ok() || some->empty()) return deleted;
    deleted.insert(deleted.end(), some->begin(), some->end());
  }
}

}  // namespace phimap
