// Errors that several calls answer with.
#ifndef PHIMAP_SERVER_CALLS_CALL_ERRORS_H_
#define PHIMAP_SERVER_CALLS_CALL_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/status/error.h"

namespace phimap {

// INVALID_ARGUMENT: the bytes do not parse as a message of `type`.
absl::Status MalformedRequest(absl::string_view type);

// UNIMPLEMENTED (MESSAGE_COUNT_WRONG), as gRPC wants it: the RPC takes one message of `type`, and
// the request has `actual`, such as "none" or "more".
absl::Status WrongMessageCount(absl::string_view type, absl::string_view actual);

// Returns the error for a message that the stream does not allow at this point.
absl::Status Unexpected(const char* field, const char* expected);

// Returns the error for a client that ended the stream before it was complete.
absl::Status ClientGone();

// UNAVAILABLE (SERVER_SHUTTING_DOWN, with a retry delay): the call has had no effect, or none that
// remains.
inline absl::Status ShuttingDown() {
  return MakeError(absl::StatusCode::kUnavailable, "SERVER_SHUTTING_DOWN", "",
                   "the server is shutting down", {}, /*retry_delay_ms=*/1000);
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_CALL_ERRORS_H_
