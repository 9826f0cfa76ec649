// The Check call of the standard health service, grpc.health.v1. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_HEALTH_CALL_H_
#define PHIMAP_CLIENT_CPP_HEALTH_CALL_H_

#include <grpcpp/impl/codegen/channel_interface.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap::client {

// Returns true if the server reports that it serves `service`, such as
// "phimap.v1.TransformService"; an empty name asks for the server as a whole. Returns NOT_FOUND if
// the server has no such service.
absl::StatusOr<bool> CallHealth(const std::shared_ptr<grpc::ChannelInterface>& channel,
                                absl::string_view service, absl::Time deadline);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_HEALTH_CALL_H_
