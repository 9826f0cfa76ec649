// An error as the command line prints it.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_ERROR_TEXT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_ERROR_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::cli {

// Returns one line "phimap: message" and, where it helps, lines that say when to retry and how to
// start a server that cannot be reached. Ends with a newline. The message uses the user's words:
// the options of `command` ("build") instead of the API's fields, and the row of the input if
// WithInputRow set it. If `command` is empty, the API's fields are kept, for programs that compare
// them. REQUIRES: status is not OK. Pure.
std::string ErrorText(const absl::Status& status, absl::string_view server,
                      absl::string_view command);

// Attaches the number of the row in the input to an error about a row, because the server counts
// rows within a request. `rows_before` rows were in earlier requests. Pure.
absl::Status WithInputRow(const absl::Status& status, int64_t rows_before);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_ERROR_TEXT_H_
