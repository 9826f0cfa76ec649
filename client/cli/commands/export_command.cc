// `phimap export`.
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/cli/commands/commands.h"
#include "client/cli/local/local_maps.h"
#include "client/cli/views/text.h"
#include "client/files/output_file.h"
#include "core/status/command_line.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

struct ExportArguments {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference;
  // A path, or "-" for standard output.
  std::string output;
  // "artifact" or "onnx".
  std::string format = "artifact";
  // "features" or "answers"; empty means answers if the version has a head.
  std::string outputs;
};

// Writes a version as an ONNX model, which this process makes of the artifact.
absl::Status ExportModel(const ExportArguments& arguments, RowContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                          OutputFile::Open(arguments.output));
  std::string artifact;
  PHIMAP_ASSIGN_OR_RETURN(const client::ExportResult result, context.maps.Export(
                                                                 arguments.reference,
                                                                 [&](absl::string_view bytes) {
                                                                   artifact.append(bytes.data(),
                                                                                   bytes.size());
                                                                   return absl::OkStatus();
                                                                 },
                                                                 &context.cancel));
  PHIMAP_ASSIGN_OR_RETURN(const std::string model,
                          OnnxModelOfArtifact(std::move(artifact), arguments.outputs));
  PHIMAP_RETURN_IF_ERROR(file->Append(model));
  PHIMAP_RETURN_IF_ERROR(file->Commit());
  *context.console.stream << client::ReferenceTo(result.version) << ": ONNX model of "
                          << SizeText(static_cast<int64_t>(model.size())) << " to " << file->name()
                          << std::endl;
  return absl::OkStatus();
}

// Writes a version's artifact to a file that appears only when it is complete and checked. A pipe
// receives the bytes as they arrive.
absl::Status RunExport(const ExportArguments& arguments, RowContext& context) {
  if (arguments.format == "onnx") return ExportModel(arguments, context);
  if (!arguments.outputs.empty()) {
    return absl::InvalidArgumentError("--outputs is of --format=onnx; an artifact has everything");
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                          OutputFile::Open(arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(
      const client::ExportResult result,
      context.maps.Export(
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
                   "A mapping or a version of it (default: the newest), or an artifact's file")
      ->required();
  command
      ->add_option(
          "-o,--output", exported.output,
          "File to write; it appears only when it is complete and checked. - is standard output")
      ->required();
  command
      ->add_option("--format", exported.format,
                   "artifact, which phimap loads and imports, or onnx, a model for other runtimes "
                   "(default: artifact)")
      ->check(OneOf({"artifact", "onnx"}));
  command
      ->add_option("--outputs", exported.outputs,
                   "With --format=onnx: features, or the answers of the head (default: answers if "
                   "there is a head)")
      ->check(OneOf({"features", "answers"}));
  return {
      .app = command,
      .run_on_rows = [arguments](RowContext& context) { return RunExport(*arguments, context); },
      .is_local = [arguments] { return IsArtifactPath(arguments->reference); },
      .interruptible = true};
}

}  // namespace phimap::cli
