// `phimap inspect`: the content of an exported file, without a server.
#include <memory>
#include <new>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/local/local_maps.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/status_macros.h"
#include "proto/artifact/artifact_description.h"

namespace phimap::cli {
namespace {

struct InspectArguments {
  // A path, or "-" for standard input.
  std::string input;
  bool json = false;
};

absl::Status Inspect(const InspectArguments& arguments, int width, std::ostream& out) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, ReadArtifactFile(arguments.input));
  bool ran = false;
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, DescribeArtifact(bytes, ran));
  if (arguments.json) return PrintJson(version, out);
  out << RenderArtifact(arguments.input, version, ran, width);
  return absl::OkStatus();
}

// Checks an artifact as an import does, including its reference vectors, and prints it: as text
// that is `width` characters wide, or as the JSON of a Version without a name. DATA_LOSS for a file
// that is damaged or is not an artifact.
absl::Status RunInspect(const InspectArguments& arguments, int width, std::ostream& out) {
  try {
    return Inspect(arguments, width, out);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is not enough memory to inspect ", arguments.input));
  }
}

}  // namespace

Command AddInspect(CLI::App& app) {
  auto arguments = std::make_shared<InspectArguments>();
  InspectArguments& inspect = *arguments;
  CLI::App* command = app.add_subcommand(
      "inspect", "Check an exported file and show its content, without a server");
  command->add_option("FILE", inspect.input, "Exported file; - is standard input")->required();
  command->add_flag("--json", inspect.json,
                    "Print the content as JSON, as a version that has no name");
  return {.app = command,
          .run_locally =
              [arguments](LocalContext& context) {
                return RunInspect(*arguments, context.console.width, context.out);
              },
          .json = &inspect.json};
}

}  // namespace phimap::cli
