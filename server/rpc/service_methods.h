// The metrics of a service's methods, all present from the start.
#ifndef PHIMAP_SERVER_RPC_SERVICE_METHODS_H_
#define PHIMAP_SERVER_RPC_SERVICE_METHODS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/observe/metrics.h"

namespace google::protobuf {
class ServiceDescriptor;
}

namespace phimap {

// Immutable after construction; thread-safe.
class ServiceMethods {
 public:
  ServiceMethods(const google::protobuf::ServiceDescriptor& service, Metrics& metrics);

  // REQUIRES: the service has this method. Look it up once, not per call.
  const MethodMetrics& Get(absl::string_view method) const;

 private:
  absl::flat_hash_map<std::string, MethodMetrics> methods_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_SERVICE_METHODS_H_
