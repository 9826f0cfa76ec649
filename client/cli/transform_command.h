// `phimap transform`.
#ifndef PHIMAP_CLIENT_CLI_TRANSFORM_COMMAND_H_
#define PHIMAP_CLIENT_CLI_TRANSFORM_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/command_context.h"
#include "client/cli/input_rows.h"

namespace phimap::cli {

struct TransformArguments {
  // "name", "name@7" or "name@alias".
  std::string reference;
  // Its format is of whichever side has no known extension.
  InputArguments input;
  // "-" is standard output.
  std::string output;
  // "csv", "npy" or empty; wins for the output.
  std::string output_format;
  // One column more in the output, the last: the residual of each row.
  bool residual = false;
  // For all of it; 0: no limit.
  double timeout_seconds = 0;
};

// Maps the rows of the input and writes their features. A failure leaves no output file. An output
// that is the input, by any name, is refused before a row is read.
absl::Status RunTransform(const TransformArguments& arguments, CommandContext& context);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_TRANSFORM_COMMAND_H_
