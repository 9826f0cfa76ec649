#include "client/cpp/grpc_status.h"

#include <optional>

#include "absl/strings/match.h"
#include "client/cpp/error_decoder.h"
#include "core/status/error.h"

namespace phimap::client {

absl::Status FromGrpc(const grpc::Status& status) {
  // grpc::Status::error_details is the value of "grpc-status-details-bin".
  return DecodeError(status.error_code(), status.error_message(), status.error_details());
}

bool IsBrokenConnection(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kUnavailable) {
    // With these reasons the server reports a kernel service that fails, although the server has
    // already retried.
    const std::optional<ErrorDetail> detail = DetailOf(status);
    return !detail.has_value() || !absl::StartsWith(detail->reason, "KERNEL_SERVICE_");
  }
  // gRPC 1.51 returns this error when the transport closes between two operations of a stream.
  return status.code() == absl::StatusCode::kUnknown &&
         absl::StrContains(status.message(), "Stream removed");
}

void SetDeadline(grpc::ClientContext& context, absl::Time deadline) {
  if (deadline != absl::InfiniteFuture()) context.set_deadline(absl::ToChronoTime(deadline));
}

}  // namespace phimap::client
