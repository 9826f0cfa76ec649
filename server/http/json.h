// The messages of the API as JSON.
//
// They are as protobuf's JSON, with the names of the protos, and with rows as people write them:
// where a request has `examples`, it may have `rows` instead, an array of rows of numbers or an
// array of texts; and the rows of an answer are arrays of rows. A float32 is printed as the
// shortest text of its value in float64, so a client that reads float64 gets the very value.
#ifndef PHIMAP_SERVER_HTTP_JSON_H_
#define PHIMAP_SERVER_HTTP_JSON_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace phimap {

// Whether a header content-type announces JSON.
bool IsJsonType(absl::string_view content_type);

// Bytes of memory that ParseJson takes at most for a text of so many bytes, with the message.
int64_t JsonCost(int64_t bytes);

// Reads `text`, an object, into `message`, which is empty. An empty text is an empty object.
// INVALID_ARGUMENT (REQUEST_MALFORMED, ROWS_…) with the place: the field, or the row and column.
absl::Status ParseJson(absl::string_view text, google::protobuf::Message& message);

// Bytes of memory that PrintJson takes at most for a message of so many bytes on the wire, with it.
int64_t PrintedCost(int64_t bytes);

// Returns `message` as JSON, with a newline at the end. Leaves it without its rows.
std::string PrintJson(google::protobuf::Message& message);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_JSON_H_
