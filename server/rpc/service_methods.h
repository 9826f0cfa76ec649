// A service's methods: the metrics of each, all present from the start, and the role each needs.
#ifndef PHIMAP_SERVER_RPC_SERVICE_METHODS_H_
#define PHIMAP_SERVER_RPC_SERVICE_METHODS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/auth/access_control.h"
#include "server/observe/metrics.h"
#include "server/rpc/rpc_method.h"

namespace google::protobuf {
class ServiceDescriptor;
}

namespace phimap {

// Immutable after construction; thread-safe.
class ServiceMethods {
 public:
  // REQUIRES: every method of the service has a role (server/auth/method_roles.cc). `access`
  // outlives the methods.
  ServiceMethods(const google::protobuf::ServiceDescriptor& service, const AccessControl& access,
                 Metrics& metrics);

  // REQUIRES: the service has this method. Look it up once, not per call.
  const RpcMethod& Get(absl::string_view method) const;

 private:
  absl::flat_hash_map<std::string, RpcMethod> methods_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_SERVICE_METHODS_H_
