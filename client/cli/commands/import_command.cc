// `phimap import`.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "client/files/input_file.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct ImportArguments {
  // A path, or "-" for standard input.
  std::string input;
  // Name of the mapping. Empty: the name of the file up to the first '@' or '.', since an artifact
  // contains no name.
  std::string name;
  bool json = false;
};

// The server decides which names are valid.
absl::StatusOr<std::string> MappingName(const ImportArguments& arguments) {
  if (!arguments.name.empty()) return arguments.name;
  if (arguments.input == "-") {
    return absl::InvalidArgumentError(
        "--name: standard input has no file name to name the mapping after; give a name");
  }
  const std::string file = arguments.input.substr(arguments.input.find_last_of('/') + 1);
  std::string name = file.substr(0, file.find_first_of("@."));
  if (!name.empty()) return name;
  return absl::InvalidArgumentError(absl::StrCat(
      "--name: the file's name, ", file, ", does not begin with a mapping's name; give a name"));
}

// Stores an exported artifact as a version of a mapping, and prints the version with its
// certificate, as text or as the JSON of a Version.
absl::Status RunImport(const ImportArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string name, MappingName(arguments));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, InputFile::Open(arguments.input));
  const client::CancelToken::Registration registration =
      context.cancel.OnCancel([&] { file->Interrupt(); });
  const auto source = [&](size_t max_bytes) -> absl::StatusOr<std::string> {
    std::string bytes(max_bytes, '\0');
    PHIMAP_ASSIGN_OR_RETURN(const size_t size, file->Read(bytes.data(), bytes.size()));
    bytes.resize(size);
    return bytes;
  };
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version,
                          context.client.Import(name, source, &context.cancel));
  if (arguments.json) return PrintJson(version, context.out);
  context.out << RenderVersion(version, context.console.width);
  return absl::OkStatus();
}

}  // namespace

Command AddImport(CLI::App& app) {
  auto arguments = std::make_shared<ImportArguments>();
  ImportArguments& imported = *arguments;
  CLI::App* command = app.add_subcommand(
      "import", "Store an exported file as a version; importing a file twice adds nothing");
  command->add_option("FILE", imported.input, "Exported file; - is standard input")->required();
  command->add_option("--name", imported.name,
                      "Mapping that gets the version (default: the name of FILE up to its first "
                      "'@' or '.', such as letters for letters@3.phimap)");
  command->add_flag("--json", imported.json, "Print the version as JSON");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunImport(*arguments, context); },
          .json = &imported.json,
          .interruptible = true};
}

}  // namespace phimap::cli
