#include "server/mapping/mapping_changes.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/mapping/mapping_to_proto.h"
#include "server/mapping/request_fields.h"
#include "server/registry/reference.h"

namespace phimap {
namespace {

// Returns whether the change was made or may have been made. UNAVAILABLE means that the outcome of
// the commit is unknown.
bool MayHaveHappened(const absl::Status& status) {
  return status.ok() || absl::IsUnavailable(status);
}

}  // namespace

void MappingChanges::CatchUp(const absl::Status& changed) {
  // The change is made even if its names cannot be read now; the registry logs that error.
  if (MayHaveHappened(changed)) registry_.CatchUp().IgnoreError();
}

absl::StatusOr<AliasRecord> MappingChanges::SetAlias(absl::string_view mapping,
                                                     absl::string_view alias, int64_t version,
                                                     absl::string_view etag,
                                                     absl::string_view operation_id) {
  absl::StatusOr<AliasRecord> moved = store_.SetAlias(mapping, alias, version, etag, operation_id);
  CatchUp(moved.status());
  if (!moved.ok()) return moved;
  logger_.Log(LogLevel::kInfo, "alias_set",
              {{"mapping", moved->mapping},
               {"alias", moved->name},
               {"version", absl::StrCat(moved->version)},
               {"previous", absl::StrCat(moved->previous_version)}});
  return moved;
}

absl::Status MappingChanges::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                         absl::string_view etag, absl::string_view operation_id) {
  const absl::Status deleted = store_.DeleteAlias(mapping, alias, etag, operation_id);
  CatchUp(deleted);
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "alias_deleted",
                {{"mapping", std::string(mapping)}, {"alias", std::string(alias)}});
  }
  return deleted;
}

absl::Status MappingChanges::DeleteVersion(absl::string_view mapping, int64_t number,
                                           Rollbacks rollbacks, absl::string_view operation_id) {
  const absl::Status deleted = store_.DeleteVersion(mapping, number, rollbacks, operation_id);
  CatchUp(deleted);
  if (MayHaveHappened(deleted)) builds_.VersionsGone(mapping, number);
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "version_deleted",
                {{"mapping", std::string(mapping)}, {"version", absl::StrCat(number)}});
  }
  return deleted;
}

absl::StatusOr<VersionRecord> MappingChanges::KeepVersion(absl::string_view mapping, int64_t number,
                                                          absl::Duration ttl,
                                                          absl::string_view operation_id) {
  absl::StatusOr<VersionRecord> kept = store_.KeepVersion(mapping, number, ttl, operation_id);
  if (!kept.ok()) return kept;
  logger_.Log(LogLevel::kInfo, "version_kept",
              {{"mapping", kept->mapping},
               {"version", absl::StrCat(kept->number)},
               {"ttl", absl::FormatDuration(ttl)}});
  return kept;
}

absl::Status MappingChanges::DeleteExpired() {
  const absl::StatusOr<std::vector<VersionName>> deleted = store_.DeleteExpired();
  if (!deleted.ok() || !deleted->empty()) CatchUp(deleted.status());
  if (!deleted.ok()) return deleted.status();
  for (const VersionName& version : *deleted) {
    builds_.VersionsGone(version.mapping, version.number);
    logger_.Log(LogLevel::kInfo, "version_expired",
                {{"mapping", version.mapping}, {"version", absl::StrCat(version.number)}});
  }
  return absl::OkStatus();
}

absl::Status MappingChanges::DeleteMapping(absl::string_view mapping, Occupied occupied,
                                           absl::string_view operation_id) {
  const absl::Status deleted = store_.DeleteMapping(mapping, occupied, operation_id);
  CatchUp(deleted);
  if (MayHaveHappened(deleted)) builds_.VersionsGone(mapping, std::nullopt);
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "mapping_deleted", {{"mapping", std::string(mapping)}});
  }
  return deleted;
}

SetAliasCall::SetAliasCall(const CallStart& start, const SetAliasEnvironment& environment)
    : TypedUnaryCall(start), environment_(environment) {}

void SetAliasCall::Start() {
  if (const absl::Status checked = Check(); !checked.ok()) return Finish(checked);
  const std::string which = request().digest().empty()
                                ? absl::StrCat(request().version())
                                : absl::StrCat(kDigestPrefix, request().digest());
  environment_.registry.Acquire(
      absl::StrCat(request().mapping(), "@", which), LoadPriority::kFirst,
      [this, self = shared_from_this()](absl::StatusOr<VersionHandle> version) {
        Loaded(std::move(version));
      });
}

absl::Status SetAliasCall::Check() const {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request().mapping(), "mapping"));
  PHIMAP_RETURN_IF_ERROR(CheckAliasName(request().alias(), "alias"));
  PHIMAP_RETURN_IF_ERROR(OperationIdOf(request().operation_id()).status());
  if (request().digest().empty()) return CheckVersionNumber(request().version(), "version");
  if (request().version() == 0) return CheckDigest(request().digest(), "digest");
  return MakeError(absl::StatusCode::kInvalidArgument, "FIELDS_CONTRADICTORY", "digest",
                   "expected a version or a digest, got both");
}

void SetAliasCall::Loaded(absl::StatusOr<VersionHandle> version) {
  // A repeated call gets its first answer, even if its version was deleted since.
  const bool repeats = absl::IsNotFound(version.status()) && !request().operation_id().empty() &&
                       request().version() > 0;
  if (!version.ok() && !repeats) return Finish(version.status());
  number_ = version.ok() ? version->record().number : request().version();
  // Holds the version until the alias has moved, so that it is not evicted in between.
  const absl::Status queued = environment_.store_pool.Submit(
      [this, self = shared_from_this(), held = std::move(version)] { Finish(Move()); }, caller());
  if (!queued.ok()) Finish(queued);
}

absl::Status SetAliasCall::Move() {
  if (cancelled()->load()) return absl::CancelledError("the client cancelled the call");
  PHIMAP_ASSIGN_OR_RETURN(const std::string operation_id, OperationIdOf(request().operation_id()));
  PHIMAP_ASSIGN_OR_RETURN(const AliasRecord alias,
                          environment_.changes.SetAlias(request().mapping(), request().alias(),
                                                        number_, request().etag(), operation_id));
  AliasToProto(alias, &response());
  return absl::OkStatus();
}

}  // namespace phimap
