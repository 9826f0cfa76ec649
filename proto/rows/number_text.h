// Numbers as people and programs write them in texts.
#ifndef PHIMAP_PROTO_ROWS_NUMBER_TEXT_H_
#define PHIMAP_PROTO_ROWS_NUMBER_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap {

enum class NumberError { kNone, kEmpty, kNotNumber, kNotFinite, kRange };

// Parses a number, with optional blanks around it and an optional plus sign. Pure.
NumberError ParseNumber(absl::string_view text, double& value);

// Explains the error: the expected number and the actual text. REQUIRES: `error` is not kNone.
std::string ExplainNumber(NumberError error, absl::string_view text);

// Quotes a text for a message and shortens it.
std::string QuotedCell(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ROWS_NUMBER_TEXT_H_
