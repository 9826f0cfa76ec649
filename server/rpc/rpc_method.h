// What a call knows of its method, looked up once when the server is put together.
#ifndef PHIMAP_SERVER_RPC_RPC_METHOD_H_
#define PHIMAP_SERVER_RPC_RPC_METHOD_H_

#include "server/auth/access_control.h"
#include "server/auth/role.h"
#include "server/observe/metrics.h"

namespace phimap {

struct RpcMethod {
  MethodMetrics metrics;
  // The lowest role that may call it.
  Role role;
  // Outlives the method.
  const AccessControl* access;
  // Its place in the service, as gRPC counts.
  int index = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_RPC_METHOD_H_
