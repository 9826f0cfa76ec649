#include "server/mapping/mapping_changes.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace phimap {
namespace {

// The change was made, or may have been (the commit is in doubt): what is remembered is not to be
// relied on.
bool MayHaveHappened(const absl::Status& status) {
  return status.ok() || absl::IsUnavailable(status);
}

}  // namespace

absl::StatusOr<AliasRecord> MappingChanges::SetAlias(absl::string_view mapping,
                                                     absl::string_view alias, int64_t version,
                                                     absl::string_view etag) {
  MutexLock lock(&mutex_);
  absl::StatusOr<AliasRecord> moved = store_.SetAlias(mapping, alias, version, etag);
  if (!moved.ok()) {
    if (MayHaveHappened(moved.status())) registry_.AliasGone(mapping, alias);
    return moved;
  }
  registry_.AliasMoved(mapping, alias, moved->version);
  logger_.Log(LogLevel::kInfo, "alias_set",
              {{"mapping", moved->mapping},
               {"alias", moved->name},
               {"version", absl::StrCat(moved->version)},
               {"previous", absl::StrCat(moved->previous_version)}});
  return moved;
}

absl::Status MappingChanges::DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                         absl::string_view etag) {
  MutexLock lock(&mutex_);
  const absl::Status deleted = store_.DeleteAlias(mapping, alias, etag);
  if (MayHaveHappened(deleted)) registry_.AliasGone(mapping, alias);
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "alias_deleted",
                {{"mapping", std::string(mapping)}, {"alias", std::string(alias)}});
  }
  return deleted;
}

absl::Status MappingChanges::DeleteVersion(absl::string_view mapping, int64_t number,
                                           Rollbacks rollbacks) {
  MutexLock lock(&mutex_);
  const absl::Status deleted = store_.DeleteVersion(mapping, number, rollbacks);
  if (MayHaveHappened(deleted)) {
    registry_.VersionGone(mapping, number);
    builds_.VersionsGone(mapping, number);
  }
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "version_deleted",
                {{"mapping", std::string(mapping)}, {"version", absl::StrCat(number)}});
  }
  return deleted;
}

absl::Status MappingChanges::DeleteMapping(absl::string_view mapping) {
  MutexLock lock(&mutex_);
  const absl::Status deleted = store_.DeleteMapping(mapping);
  if (MayHaveHappened(deleted)) {
    registry_.MappingGone(mapping);
    builds_.VersionsGone(mapping, std::nullopt);
  }
  if (deleted.ok()) {
    logger_.Log(LogLevel::kInfo, "mapping_deleted", {{"mapping", std::string(mapping)}});
  }
  return deleted;
}

}  // namespace phimap
