// Statuses that the calls with a stream of requests share.
#ifndef PHIMAP_SERVER_CALLS_STREAM_STATUS_H_
#define PHIMAP_SERVER_CALLS_STREAM_STATUS_H_

#include "absl/status/status.h"

namespace phimap {

// A message came that the stream does not allow there.
absl::Status Unexpected(const char* field, const char* expected);

// The client ended the stream before it was complete.
absl::Status ClientGone();

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_STREAM_STATUS_H_
