#include "server/rpc/blocking_call.h"

#include <new>
#include <utility>

#include "core/status/error.h"

namespace phimap {

BlockingCall::BlockingCall(const grpc::CallbackServerContext& context, const RpcMethod& method,
                           const Logger& logger, TaskPool& pool, std::function<absl::Status()> body)
    : scope_(context, method, logger), body_(std::move(body)) {
  scope_.MessageReceived();
  const absl::Status queued =
      scope_.admission().ok() ? pool.Submit([this] { End(Run()); }) : scope_.admission();
  if (!queued.ok()) End(queued);
}

absl::Status BlockingCall::Run() {
  if (scope_.cancelled()->load()) return absl::CancelledError("the client gave the call up");
  try {
    return body_();
  } catch (const std::bad_alloc&) {
    return MakeError(absl::StatusCode::kResourceExhausted, "OUT_OF_MEMORY", "",
                     "not enough memory for this call", {}, /*retry_delay_ms=*/1000);
  }
}

void BlockingCall::End(const absl::Status& status) {
  if (status.ok()) scope_.MessageSent();
  Finish(scope_.Finish(status));  // `this` may be gone now
}

}  // namespace phimap
