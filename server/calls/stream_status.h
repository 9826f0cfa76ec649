// Statuses that the calls with a stream of requests share.
#ifndef PHIMAP_SERVER_CALLS_STREAM_STATUS_H_
#define PHIMAP_SERVER_CALLS_STREAM_STATUS_H_

#include "absl/status/status.h"

namespace phimap {

// Returns the error for a message that the stream does not allow at this point.
absl::Status Unexpected(const char* field, const char* expected);

// Returns the error for a client that ended the stream before it was complete.
absl::Status ClientGone();

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_STREAM_STATUS_H_
