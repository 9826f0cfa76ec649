#include "client/cli/health_command.h"

#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::Status RunHealth(const HealthArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(
      const bool serving,
      context.client.CheckHealth(arguments.service, absl::Seconds(arguments.timeout_seconds)));
  if (!serving) {
    return absl::FailedPreconditionError(
        absl::StrCat(arguments.service.empty() ? "the server" : arguments.service,
                     " answers that it does not serve; a server that was told to stop says this"));
  }
  context.out << "serving\n";
  return absl::OkStatus();
}

}  // namespace phimap::cli
