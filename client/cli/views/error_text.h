// An error as the command line prints it.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_ERROR_TEXT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_ERROR_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::cli {

// One line "phimap: message" and, where they help, lines that say when to try again and how to
// start a server that is not reachable. Ends with a newline. The message names the user's words:
// the options of `command` ("build") instead of the API's fields, and the input's row if
// WithInputRow set it. An empty `command` leaves the fields, which programs compare.
// REQUIRES: status is not OK. Pure.
std::string ErrorText(const absl::Status& status, absl::string_view server,
                      absl::string_view command);

// The server counts rows within a request. If the error is about one, the row of the input is
// attached for ErrorText; `rows_before` rows were in the requests before. Pure.
absl::Status WithInputRow(const absl::Status& status, int64_t rows_before);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_ERROR_TEXT_H_
