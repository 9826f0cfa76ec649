// Errors on the wire: absl::Status with its ErrorDetail → what a client may read of it.
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
// long texts are cut, those among the details further than the message; the reason and the delay
// never are. Paths of the server's files are for its log. Empty for an OK status.
StatusDetails DetailsForClient(const absl::Status& status);

// What a client may read of an error: the message without the path that its facts name.
std::string MessageForClient(const absl::Status& status);

// The text up to `max_bytes`, cut between characters (half a UTF-8 sequence is not a proto string),
// with an ellipsis in the place of what was cut.
std::string Shortened(absl::string_view text, size_t max_bytes);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_STATUS_DETAILS_H_
