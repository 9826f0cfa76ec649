// The header grpc-timeout: how long a caller will wait.
#ifndef PHIMAP_SERVER_CALLS_GRPC_TIMEOUT_H_
#define PHIMAP_SERVER_CALLS_GRPC_TIMEOUT_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

// Parses 1 to 8 digits and a unit: H, M, S, m (1e-3 s), u (1e-6 s) or n (1e-9 s). Returns nullopt
// for anything else. A timeout of zero is a deadline that has already passed. Pure; allocates
// nothing.
std::optional<absl::Duration> ParseGrpcTimeout(absl::string_view value);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_GRPC_TIMEOUT_H_
