// Errors on the wire: absl::Status with its ErrorDetail → grpc::Status with typed details.
#ifndef PHIMAP_SERVER_RPC_GRPC_STATUS_H_
#define PHIMAP_SERVER_RPC_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace phimap {

// The same code and message. A status made by MakeError carries its facts as google.rpc.BadRequest
// (if a field is at fault), ErrorInfo and RetryInfo (if waiting helps) in grpc-status-details-bin.
// Messages are cut at 2 KiB: trailing metadata over 8 KiB would lose the whole answer. Paths of the
// server's files are for its log.
grpc::Status ToGrpcStatus(const absl::Status& status);

// What a client may read of an error: the message without the path that its facts name.
std::string MessageForClient(const absl::Status& status);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_GRPC_STATUS_H_
