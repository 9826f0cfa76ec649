// Errors of the core as the caller of a request sees them: with places in the request and its
// stream, and with their facts as messages.
#ifndef PHIMAP_PROTO_ERROR_REQUEST_ERRORS_H_
#define PHIMAP_PROTO_ERROR_REQUEST_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/status/error.h"

namespace phimap {

// Adds the row's number in the whole stream to an error about a row of a block, in the message and
// as metadata "stream_row": a row number within a block does not help to find the row in a file of
// millions of rows. Returns `status` unchanged if it names no row.
absl::Status InStream(const absl::Status& status, int64_t rows_before);

// Prefixes the field of an error from BuildVersion with "spec.". The core names parameters and
// fields of the spec ("landmarks", "kernel"), and BuildRequest holds the spec in its field "spec".
absl::Status FromRequestRoot(const absl::Status& status);

// Returns at most the first `max_bytes` bytes of the text, cut between characters (half a UTF-8
// sequence is not a valid proto string). An ellipsis is appended if something was cut.
std::string Shortened(absl::string_view text, size_t max_bytes);

// Encodes the facts of an error as a google.rpc.Status with BadRequest (if a field is at fault),
// ErrorInfo and RetryInfo (if waiting helps). Each text is cut at `max_text_bytes`; if that is 0,
// there are no texts.
std::string EncodedDetails(absl::StatusCode code, absl::string_view message,
                           const ErrorDetail& detail, size_t max_text_bytes);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ERROR_REQUEST_ERRORS_H_
