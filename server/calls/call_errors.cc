#include "server/calls/call_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {

absl::Status MalformedRequest(absl::string_view type) {
  return MakeError(absl::StatusCode::kInvalidArgument, "REQUEST_MALFORMED", "",
                   absl::StrCat("expected a message ", type,
                                ", got bytes that do not parse as one; text fields must be UTF-8"),
                   {{"expected", std::string(type)}});
}

absl::Status WrongMessageCount(absl::string_view type, absl::string_view actual) {
  return MakeError(absl::StatusCode::kUnimplemented, "MESSAGE_COUNT_WRONG", "",
                   absl::StrCat("expected one message ", type, ", got ", actual),
                   {{"expected", "1"}, {"actual", std::string(actual)}});
}

absl::Status Unexpected(const char* field, const char* expected) {
  return MakeError(absl::StatusCode::kInvalidArgument, "MESSAGE_UNEXPECTED", field,
                   absl::StrCat("expected ", expected));
}

absl::Status ClientGone() { return absl::CancelledError("the client cancelled the stream"); }

}  // namespace phimap
