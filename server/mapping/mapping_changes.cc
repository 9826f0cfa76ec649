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
                                                     const ChangeOrigin& origin) {
  absl::StatusOr<AliasRecord> moved = store_.SetAlias(mapping, alias, version, etag, origin);
  CatchUp(moved.status());
  if (!moved.ok()) return moved;
  logger_.Log(LogLevel::kInfo, "alias_set",
              {{"mapping", moved->mapping},
               {"alias", moved->name},
               {"version", moved->version},
               {"previous", moved->previous_version > 0 ? std::optional(moved->previous_version)
                                                        : std::nullopt},
               {"peer", origin.peer},
               {"caller", origin.principal},
               {"request_id", origin.request_id},
               {"trace_id", origin.trace_id}});
  return moved;
}

absl::Status MappingChanges::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                         absl::string_view etag, const ChangeOrigin& origin) {
  const absl::Status deleted = store_.DeleteAlias(mapping, alias, etag, origin);
  CatchUp(deleted);
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "alias_deleted",
                {{"mapping", mapping},
                 {"alias", alias},
                 {"peer", origin.peer},
                 {"caller", origin.principal},
                 {"request_id", origin.request_id},
                 {"trace_id", origin.trace_id}});
  }
  return deleted;
}

absl::Status MappingChanges::DeleteVersion(const Reference& version, Rollbacks rollbacks,
                                           const ChangeOrigin& origin) {
  std::optional<int64_t> number = version.number;
  absl::Status deleted;
  if (number.has_value()) {
    deleted = store_.DeleteVersion(version.mapping, *number, rollbacks, origin);
  } else {
    const absl::StatusOr<int64_t> found =
        store_.DeleteVersionByDigest(version.mapping, version.digest, rollbacks, origin);
    if (found.ok()) number = *found;
    deleted = found.status();
  }
  CatchUp(deleted);
  if (MayHaveHappened(deleted)) builds_.VersionsGone(version.mapping, number);
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "version_deleted",
                {{"mapping", version.mapping},
                 {"version", *number},
                 {"peer", origin.peer},
                 {"caller", origin.principal},
                 {"request_id", origin.request_id},
                 {"trace_id", origin.trace_id}});
  }
  return deleted;
}

absl::StatusOr<VersionRecord> MappingChanges::KeepVersion(absl::string_view mapping, int64_t number,
                                                          absl::Duration ttl,
                                                          const ChangeOrigin& origin) {
  absl::StatusOr<VersionRecord> kept = store_.KeepVersion(mapping, number, ttl, origin);
  if (!kept.ok()) return kept;
  logger_.Log(LogLevel::kInfo, "version_kept",
              {{"mapping", kept->mapping},
               {"version", kept->number},
               {"ttl", absl::FormatDuration(ttl)},
               {"peer", origin.peer},
               {"caller", origin.principal},
               {"request_id", origin.request_id},
               {"trace_id", origin.trace_id}});
  return kept;
}

absl::Status MappingChanges::DeleteExpired() {
  const absl::StatusOr<std::vector<VersionName>> deleted = store_.DeleteExpired();
  if (!deleted.ok() || !deleted->empty()) CatchUp(deleted.status());
  if (!deleted.ok()) return deleted.status();
  for (const VersionName& version : *deleted) {
    builds_.VersionsGone(version.mapping, version.number);
    logger_.Log(LogLevel::kInfo, "version_expired",
                {{"mapping", version.mapping}, {"version", version.number}});
  }
  return absl::OkStatus();
}

absl::Status MappingChanges::DeleteMapping(absl::string_view mapping, Occupied occupied,
                                           const ChangeOrigin& origin) {
  const absl::Status deleted = store_.DeleteMapping(mapping, occupied, origin);
  CatchUp(deleted);
  if (MayHaveHappened(deleted)) builds_.VersionsGone(mapping, std::nullopt);
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "mapping_deleted",
                {{"mapping", mapping},
                 {"peer", origin.peer},
                 {"caller", origin.principal},
                 {"request_id", origin.request_id},
                 {"trace_id", origin.trace_id}});
  }
  return deleted;
}

SetAliasCall::SetAliasCall(const CallStart& start, const SetAliasEnvironment& environment)
    : TypedUnaryCall(start), environment_(environment) {}

void SetAliasCall::Start() {
  if (const absl::Status checked = Check(); !checked.ok()) return Finish(checked);
  environment_.registry.Acquire(
      request().reference(), LivePart::kFeatures, LoadPriority::kFirst,
      [this, self = shared_from_this()](absl::StatusOr<VersionHandle> version) {
        Loaded(std::move(version));
      });
}

absl::Status SetAliasCall::Check() {
  PHIMAP_ASSIGN_OR_RETURN(reference_, FixedReference(request(), request().reference()));
  PHIMAP_RETURN_IF_ERROR(CheckMapping(reference_.mapping));
  PHIMAP_RETURN_IF_ERROR(CheckAliasName(request().alias(), "alias"));
  return OperationIdOf(request().operation_id()).status();
}

void SetAliasCall::Loaded(absl::StatusOr<VersionHandle> version) {
  // A repeated call gets its first answer, even if its version was deleted since.
  const bool repeats = absl::IsNotFound(version.status()) && !request().operation_id().empty() &&
                       reference_.number.has_value();
  if (!version.ok() && !repeats) return Finish(version.status());
  number_ = version.ok() ? version->record().number : *reference_.number;
  if (!version.ok() || version->head_facts() == nullptr) return Submit(std::move(version));
  // Whoever predicts by the alias must not wait for a load either. If there is no memory for both,
  // the alias moves all the same.
  const std::string answers = absl::StrCat(version->record().mapping, "@", number_);
  environment_.registry.Acquire(answers, LivePart::kAnswers, LoadPriority::kFirst,
                                [this, self = shared_from_this(), held = std::move(version)](
                                    const absl::StatusOr<VersionHandle>&) { Submit(held); });
}

void SetAliasCall::Submit(absl::StatusOr<VersionHandle> version) {
  // Holds the version until the alias has moved, so that it is not evicted in between.
  const absl::Status queued = environment_.store_pool.Submit(
      [this, self = shared_from_this(), held = std::move(version)] { Finish(Move()); }, caller());
  if (!queued.ok()) Finish(queued);
}

absl::Status SetAliasCall::Move() {
  if (cancelled()->load()) return absl::CancelledError("the client cancelled the call");
  PHIMAP_ASSIGN_OR_RETURN(const std::string operation_id, OperationIdOf(request().operation_id()));
  PHIMAP_ASSIGN_OR_RETURN(
      const AliasRecord alias,
      environment_.changes.SetAlias(reference_.mapping, request().alias(), number_,
                                    request().etag(), Origin(operation_id)));
  AliasToProto(alias, &response());
  return absl::OkStatus();
}

}  // namespace phimap
