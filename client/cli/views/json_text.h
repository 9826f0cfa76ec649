// Messages as JSON, for programs.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_JSON_TEXT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_JSON_TEXT_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/statusor.h"

namespace phimap::cli {

// The canonical JSON of protobuf with the names of the proto files, indented, ended by a newline.
// Fields without presence are written even if zero, so a program always finds them; absent
// `optional` fields are left out. 64-bit integers are strings, as canonical JSON requires.
absl::StatusOr<std::string> JsonText(const google::protobuf::Message& message);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_JSON_TEXT_H_
