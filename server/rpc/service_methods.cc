#include "server/rpc/service_methods.h"

#include <optional>
#include <utility>

#include "core/status/check.h"
#include "google/protobuf/descriptor.h"
#include "server/auth/method_roles.h"

namespace phimap {
namespace {

const char* TypeOf(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming() && method.server_streaming()) return "bidi_stream";
  if (method.client_streaming()) return "client_stream";
  if (method.server_streaming()) return "server_stream";
  return "unary";
}

}  // namespace

ServiceMethods::ServiceMethods(const google::protobuf::ServiceDescriptor& service,
                               const AccessControl& access, Metrics& metrics) {
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    MethodMetrics counted = metrics.AddMethod(service.full_name(), method.name(), TypeOf(method));
    const std::optional<Role> role = RoleForMethod(counted.full_name);
    PHIMAP_CHECK(role.has_value());
    methods_.emplace(method.name(), RpcMethod{std::move(counted), *role, &access, i});
  }
}

const RpcMethod& ServiceMethods::Get(absl::string_view method) const {
  const auto found = methods_.find(method);
  PHIMAP_CHECK(found != methods_.end());
  return found->second;
}

}  // namespace phimap
