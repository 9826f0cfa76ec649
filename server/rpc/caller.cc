#include "server/rpc/caller.h"

#include <iterator>
#include <memory>

#include "absl/strings/match.h"

namespace phimap {

Caller CallerOf(const grpc::CallbackServerContext& context, const AccessControl& access) {
  Caller caller;
  if (access.asks_for_tokens()) {
    const auto [first, last] = context.client_metadata().equal_range("authorization");
    caller.authorizations = static_cast<size_t>(std::distance(first, last));
    if (first != last) caller.authorization = {first->second.data(), first->second.size()};
    return caller;
  }
  const std::shared_ptr<const grpc::AuthContext> connection = context.auth_context();
  caller.certificate_verified = connection != nullptr && connection->IsPeerAuthenticated();
  caller.unix_socket = absl::StartsWith(context.peer(), "unix:");
  return caller;
}

}  // namespace phimap
