#include "server/mapping/set_alias_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/mapping/ids_from_proto.h"
#include "server/mapping/version_to_proto.h"
#include "server/registry/reference.h"

namespace phimap {

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
