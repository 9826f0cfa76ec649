#include "server/calls/stream_status.h"

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {

absl::Status Unexpected(const char* field, const char* expected) {
  return MakeError(absl::StatusCode::kInvalidArgument, "MESSAGE_UNEXPECTED", field,
                   absl::StrCat("expected ", expected));
}

absl::Status ClientGone() { return absl::CancelledError("the client cancelled the stream"); }

}  // namespace phimap
