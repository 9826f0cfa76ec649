#include "server/rpc/set_alias_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "server/registry/reference.h"
#include "server/rpc/version_to_proto.h"

namespace phimap {

SetAliasCall::SetAliasCall(const Environment& environment, const RpcMethod& method,
                           const grpc::CallbackServerContext& context,
                           const v1::SetAliasRequest& request, v1::Alias* response)
    : environment_(environment),
      scope_(context, method, environment.logger),
      request_(request),
      response_(response) {
  scope_.MessageReceived();
}

void SetAliasCall::Start() {
  if (!scope_.admission().ok()) return End(scope_.admission());
  if (const absl::Status checked = Check(); !checked.ok()) return End(checked);
  environment_.registry.Acquire(
      absl::StrCat(request_.mapping(), "@", request_.version()),
      [this](absl::StatusOr<VersionHandle> version) { Loaded(std::move(version)); });
}

absl::Status SetAliasCall::Check() const {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request_.mapping(), "mapping"));
  PHIMAP_RETURN_IF_ERROR(CheckAliasName(request_.alias(), "alias"));
  return CheckVersionNumber(request_.version(), "version");
}

void SetAliasCall::Loaded(absl::StatusOr<VersionHandle> version) {
  if (!version.ok()) return End(version.status());
  version_ = *std::move(version);
  const absl::Status queued = environment_.store_pool.Submit([this] { End(Move()); });
  if (!queued.ok()) End(queued);
}

absl::Status SetAliasCall::Move() {
  if (scope_.cancelled()->load()) return absl::CancelledError("the client gave the call up");
  PHIMAP_ASSIGN_OR_RETURN(const AliasRecord alias,
                          environment_.changes.SetAlias(request_.mapping(), request_.alias(),
                                                        request_.version(), request_.etag()));
  AliasToProto(alias, response_);
  return absl::OkStatus();
}

void SetAliasCall::End(const absl::Status& status) {
  if (status.ok()) scope_.MessageSent();
  Finish(scope_.Finish(status));  // `this` may be gone now
}

}  // namespace phimap
