#include "server/rpc/refused_call.h"

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {

absl::Status NotOffered(const RpcMethod& method) {
  return MakeError(
      absl::StatusCode::kUnimplemented, "RPC_NOT_OFFERED", "",
      absl::StrCat(method.metrics.full_name, " is part of the API and not offered by this server"));
}

}  // namespace phimap
