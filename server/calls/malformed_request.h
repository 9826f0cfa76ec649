// The answers to a request that is not one message of its RPC.
#ifndef PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_
#define PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// INVALID_ARGUMENT: the bytes do not parse as a message of `type`.
absl::Status MalformedRequest(absl::string_view type);

// UNIMPLEMENTED (MESSAGE_COUNT_WRONG), as gRPC wants it: the RPC takes one message of `type`, and
// the request has `actual`, such as "none" or "more".
absl::Status WrongMessageCount(absl::string_view type, absl::string_view actual);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_MALFORMED_REQUEST_H_
