// `phimap advise`.
#ifndef PHIMAP_CLIENT_CLI_ADVISE_COMMAND_H_
#define PHIMAP_CLIENT_CLI_ADVISE_COMMAND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "client/cli/command_context.h"

namespace phimap::cli {

struct AdviseArguments {
  double margin = 0;
  double error = 0;
  double confidence = 0;
  double alpha = 0;
  // 0: not given.
  int64_t points = 0;
  int32_t classes = 0;
  double distortion = 0;
  double kernel_error = 0;
  bool json = false;
};

// Prints what dimensions suffice: drawn, or an AdviseResponse as JSON.
absl::Status RunAdvise(const AdviseArguments& arguments, CommandContext& context);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_ADVISE_COMMAND_H_
