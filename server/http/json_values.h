// Objects and single values of JSON: how they are read and named in errors, and how numbers and
// texts are written.
#ifndef PHIMAP_SERVER_HTTP_JSON_VALUES_H_
#define PHIMAP_SERVER_HTTP_JSON_VALUES_H_

#include <simdjson.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Parses a body that is an object, which is valid as long as `parser`. Numbers without a fraction
// beyond 64 bits, such as JavaScript writes for 1e20, are read as float64. INVALID_ARGUMENT
// (REQUEST_MALFORMED, field "body").
absl::Status ParseObject(simdjson::dom::parser& parser, absl::string_view body,
                         simdjson::dom::object& object);

// "an array", "a number", ….
const char* NameOf(simdjson::dom::element element);

// Appends the shortest text of `value`, which has at most 24 characters; of an infinity and of NaN
// the strings that protobuf's JSON has for them.
void AppendNumber(double value, std::string& text);

// Appends a string. Each byte of a value that is not UTF-8, which JSON cannot carry, is written as
// the character of that number. At most six characters for each byte, and the quotes.
void AppendString(absl::string_view value, std::string& text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_JSON_VALUES_H_
