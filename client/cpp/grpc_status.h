// Turns the outcome of a gRPC call into absl::Status. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_GRPC_STATUS_H_
#define PHIMAP_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace phimap::client {

// With the server's typed details attached (error_decoder.h).
absl::Status FromGrpc(const grpc::Status& status);

// True if the connection broke or could not be made, as opposed to an answer of the server's
// handler.
bool IsBrokenConnection(const absl::Status& status);

// Sets `deadline` on the call unless it is infinite.
void SetDeadline(grpc::ClientContext& context, absl::Time deadline);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_GRPC_STATUS_H_
