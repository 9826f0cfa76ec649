// Converts a server's error to absl::Status. Free of gRPC.
#ifndef PHIMAP_CLIENT_CPP_ERROR_DECODER_H_
#define PHIMAP_CLIENT_CPP_ERROR_DECODER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::client {

// Builds the status of a call that ended with this canonical code, message and value of the
// trailing metadata "grpc-status-details-bin". BadRequest (its first violation), ErrorInfo and
// RetryInfo are attached as a phimap::ErrorDetail, which DetailOf reads. Details that are missing,
// unknown or malformed are dropped; the code and the message are never lost. A code that is not
// canonical becomes kUnknown. Pure, thread-safe.
absl::Status DecodeError(int code, absl::string_view message, absl::string_view details);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_ERROR_DECODER_H_
