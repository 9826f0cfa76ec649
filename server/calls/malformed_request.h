// The answer to bytes that do not parse as a message of their RPC.
#ifndef PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_
#define PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// INVALID_ARGUMENT: the bytes do not parse as a message of `type`.
absl::Status MalformedRequest(absl::string_view type);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_
