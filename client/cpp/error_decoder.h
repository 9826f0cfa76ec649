// Converts a server's error to absl::Status. Does not depend on gRPC.
#ifndef PHIMAP_CLIENT_CPP_ERROR_DECODER_H_
#define PHIMAP_CLIENT_CPP_ERROR_DECODER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::client {

// Returns the status of a call that ended with the canonical code `code` and with `message`.
// `details` is the value of the trailing metadata "grpc-status-details-bin". BadRequest (its first
// violation), ErrorInfo and RetryInfo are attached as a phimap::ErrorDetail, which DetailOf reads.
// Details that are missing, unknown or malformed are ignored, so the code and the message are never
// lost. A code that is not canonical becomes kUnknown. Pure, thread-safe.
absl::Status DecodeError(int code, absl::string_view message, absl::string_view details);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_ERROR_DECODER_H_
