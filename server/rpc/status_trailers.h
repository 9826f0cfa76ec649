// Converts an absl::Status to the trailers that end a call: grpc-status, grpc-message,
// grpc-status-details-bin.
#ifndef PHIMAP_SERVER_RPC_STATUS_TRAILERS_H_
#define PHIMAP_SERVER_RPC_STATUS_TRAILERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

struct StatusDetails {
  std::string message;  // at most 2 KiB and an ellipsis
  std::string details;  // a google.rpc.Status of at most 3 KiB; empty if the error has no facts
};

// Converts a status for a client. The facts of a status made by MakeError become
// google.rpc.BadRequest (if a field is at fault), ErrorInfo and RetryInfo (if waiting helps).
// Trailers over 8 KiB would lose the whole answer, so long texts are cut, in the details more than
// in the message; the reason and the delay are never cut. Paths of the server's files appear only
// in its log. The result is empty for an OK status.
StatusDetails DetailsForClient(const absl::Status& status);

// Returns the error message for a client, without the server's file path that the error's details
// contain.
std::string MessageForClient(const absl::Status& status);

struct StatusTrailers {
  int code = 0;             // the canonical code, which has the same number in gRPC
  std::string message;      // percent-encoded; at most 3 KiB
  std::string details_bin;  // base64 without padding, at most 4 KiB; empty if there are no facts
};

// Returns the trailers that carry DetailsForClient. Clients reject header lists over 8 KiB; a KiB
// of that is left for names and other trailers.
StatusTrailers TrailersOf(const absl::Status& status);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_STATUS_TRAILERS_H_
