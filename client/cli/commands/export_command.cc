// `phimap export`.
#include <memory>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/files/output_file.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

struct ExportArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  // A path, or "-" for standard output.
  std::string output;
};

// Writes a version's artifact to a file that appears only when it is complete and checked. A pipe
// receives the bytes as they arrive.
absl::Status RunExport(const ExportArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                          OutputFile::Open(arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(
      const client::ExportResult result,
      context.client.Export(
          arguments.reference, [&](absl::string_view bytes) { return file->Append(bytes); },
          &context.cancel));
  PHIMAP_RETURN_IF_ERROR(file->Commit());
  *context.console.stream << client::ReferenceTo(result.version) << ": "
                          << SizeText(result.size_bytes) << " to " << file->name() << ", digest "
                          << result.version.digest() << std::endl;
  return absl::OkStatus();
}

}  // namespace

Command AddExport(CLI::App& app) {
  auto arguments = std::make_shared<ExportArguments>();
  ExportArguments& exported = *arguments;
  CLI::App* command =
      app.add_subcommand("export", "Write a version to a file that another server can import");
  command
      ->add_option("NAME[@VERSION]", exported.reference,
                   "A mapping or a version of it (default: the newest)")
      ->required();
  command
      ->add_option(
          "-o,--output", exported.output,
          "File to write; it appears only when it is complete and checked. - is standard output")
      ->required();
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunExport(*arguments, context); },
          .interruptible = true};
}

}  // namespace phimap::cli
