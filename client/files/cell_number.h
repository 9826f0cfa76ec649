// Parses numbers in text files, as people and programs write them.
#ifndef PHIMAP_CLIENT_FILES_CELL_NUMBER_H_
#define PHIMAP_CLIENT_FILES_CELL_NUMBER_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap::cli {

enum class NumberError { kNone, kEmpty, kNotNumber, kNotFinite, kRange };

// Parses a number, with optional blanks around it and an optional plus sign. Pure.
NumberError ParseNumber(absl::string_view text, double& value);

// Explains the error: the expected number and the actual text. REQUIRES: `error` is not kNone.
std::string ExplainNumber(NumberError error, absl::string_view text);

// Quotes a text for a message and shortens it.
std::string QuotedCell(absl::string_view text);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_CELL_NUMBER_H_
