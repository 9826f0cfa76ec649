// Errors on the wire: absl::Status with its ErrorDetail → the part that a client may read.
#ifndef PHIMAP_SERVER_CALLS_STATUS_DETAILS_H_
#define PHIMAP_SERVER_CALLS_STATUS_DETAILS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

struct StatusDetails {
  std::string message;  // at most 2 KiB and an ellipsis
  std::string details;  // a google.rpc.Status of at most 3 KiB; empty if the error has no facts
};

// A status made by MakeError carries its facts as google.rpc.BadRequest (if a field is at fault),
// ErrorInfo and RetryInfo (if waiting helps). Trailers over 8 KiB would lose the whole answer, so
// long texts are cut, in the details further than in the message; the reason and the delay are
// never cut. Paths of the server's files appear only in its log. Empty for an OK status.
StatusDetails DetailsForClient(const absl::Status& status);

// Message of an error as a client may read it, without the path that its details name.
std::string MessageForClient(const absl::Status& status);

// The text up to `max_bytes`, cut between characters (half a UTF-8 sequence is not a proto string),
// with an ellipsis for the rest.
std::string Shortened(absl::string_view text, size_t max_bytes);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_STATUS_DETAILS_H_
