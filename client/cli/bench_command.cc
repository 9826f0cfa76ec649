#include "client/cli/bench_command.h"

#include "absl/strings/str_cat.h"
#include "client/cli/bench_process.h"
#include "client/cli/bench_report.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::Status RunBench(const BenchArguments& arguments, CommandContext& context) {
  LoadOptions options = arguments.load;
  if (options.columns == 0) {
    PHIMAP_ASSIGN_OR_RETURN(const v1::Version version,
                            context.client.GetVersion(options.reference));
    options.columns = version.input_columns();
    if (options.columns == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          options.reference, " maps strings; bench makes up rows of numbers, and no strings"));
    }
  }
  if (options.server_pid != 0 && absl::IsNotFound(UseOf(options.server_pid).status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server_pid: there is no process ", options.server_pid, " on this machine"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const LoadResult result, RunLoad(options, context.cancel));
  const int processors = UsableProcessors();
  context.out << (arguments.json ? LoadJson(options, result, processors)
                                 : LoadTable(options, result, processors));
  return absl::OkStatus();
}

}  // namespace phimap::cli
