// Who makes a call, as far as gRPC knows.
#ifndef PHIMAP_SERVER_RPC_CALLER_H_
#define PHIMAP_SERVER_RPC_CALLER_H_

#include "grpcpp/server_context.h"
#include "server/auth/access_control.h"

namespace phimap {

// What `access` decides by, and no more: gRPC makes each of these when it is asked. Points into
// `context`.
Caller CallerOf(const grpc::CallbackServerContext& context, const AccessControl& access);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_CALLER_H_
