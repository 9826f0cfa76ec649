// Converts the outcome of a gRPC call to absl::Status. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_GRPC_STATUS_H_
#define PHIMAP_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace phimap::client {

// Returns `status` with the server's typed details attached (error_decoder.h).
absl::Status FromGrpc(const grpc::Status& status);

// Returns true if the connection broke or could not be made, or the server itself is unavailable.
// Returns false if only a kernel service behind the server failed.
bool IsBrokenConnection(const absl::Status& status);

// Sets `deadline` on the call unless it is infinite.
void SetDeadline(grpc::ClientContext& context, absl::Time deadline);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_GRPC_STATUS_H_
