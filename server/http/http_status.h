// How the end of a call is told over HTTP: its status and an error as JSON.
#ifndef PHIMAP_SERVER_HTTP_HTTP_STATUS_H_
#define PHIMAP_SERVER_HTTP_HTTP_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace phimap {

// INVALID_ARGUMENT (REQUEST_MALFORMED): the path, the query or the body is not what it must be.
absl::Status MalformedHttp(absl::string_view field, absl::string_view message);

// UNIMPLEMENTED (METHOD_UNKNOWN), to be said with 405: `verb` is none of those that `path` is
// served for. The metadata `allow` has them, and so has the header of that name.
absl::Status WrongVerb(absl::string_view path, absl::Span<const std::string> allowed,
                       absl::string_view verb);

struct HttpError {
  // As "404".
  std::string status;
  // A google.rpc.Status in protobuf's JSON, with a newline at the end.
  std::string body;
  // Whole seconds for the header retry-after; empty if waiting does not help.
  std::string retry_after;
  // For the header allow; empty if another method of HTTP does not help.
  std::string allow;
};

// Returns the error for a call that ended with `code`, one of gRPC's, and `message`. `details`: the
// bytes of a google.rpc.Status with the typed details; empty if there are none.
HttpError HttpErrorOf(int code, absl::string_view message, absl::string_view details);

// Returns the error for `status`, in the words that a client may read. `http_status` stands in
// place of the one of its code, unless it is empty.
HttpError HttpErrorOf(const absl::Status& status, absl::string_view http_status = {});

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_HTTP_STATUS_H_
