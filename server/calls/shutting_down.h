// Error of calls that end because the server is shutting down.
#ifndef PHIMAP_SERVER_CALLS_SHUTTING_DOWN_H_
#define PHIMAP_SERVER_CALLS_SHUTTING_DOWN_H_

#include "absl/status/status.h"
#include "core/status/error.h"

namespace phimap {

// UNAVAILABLE (SERVER_SHUTTING_DOWN, with a retry delay): the call has had no effect, or none that
// remains.
inline absl::Status ShuttingDown() {
  return MakeError(absl::StatusCode::kUnavailable, "SERVER_SHUTTING_DOWN", "",
                   "the server is shutting down", {}, /*retry_delay_ms=*/1000);
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_SHUTTING_DOWN_H_
