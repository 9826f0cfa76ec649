// Converts an absl::Status to the trailers that end a call: grpc-status, grpc-message,
// grpc-status-details-bin.
#ifndef PHIMAP_SERVER_CALLS_STATUS_TRAILERS_H_
#define PHIMAP_SERVER_CALLS_STATUS_TRAILERS_H_

#include <string>

#include "absl/status/status.h"

namespace phimap {

struct StatusTrailers {
  int code = 0;             // the canonical code, which has the same number in gRPC
  std::string message;      // percent-encoded; at most 3 KiB
  std::string details_bin;  // base64 without padding, at most 4 KiB; empty if there are no facts
};

// Returns the trailers that carry DetailsForClient. Clients reject header lists over 8 KiB; a KiB
// of that is left for names and other trailers.
StatusTrailers TrailersOf(const absl::Status& status);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_STATUS_TRAILERS_H_
