// The answer to bytes that are no message of their RPC.
#ifndef PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_
#define PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// INVALID_ARGUMENT: what came does not parse as a message of `type`.
absl::Status MalformedRequest(absl::string_view type);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_
