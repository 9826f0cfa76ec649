// `phimap delete`.
#include <memory>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct DeleteArguments {
  // "letters@7", or "letters" with `all_versions`.
  std::string reference;
  bool all_versions = false;
  // Deletes a version even if the rollback of an alias would need it.
  bool give_up_rollback = false;
};

absl::Status Unclear(const std::string& reference, absl::string_view advice) {
  return absl::InvalidArgumentError(
      absl::StrCat("NAME@VERSION: '", reference, "' does not say what to delete; ", advice));
}

// Deletes a version, or a mapping with all its versions. A version must be given by its number or
// digest. A bare name does not suffice, nor does an alias, which may move before the server looks
// it up.
absl::Status RunDelete(const DeleteArguments& arguments, CommandContext& context) {
  const std::string& reference = arguments.reference;
  const bool has_version = absl::StrContains(reference, '@');
  if (arguments.all_versions) {
    if (has_version) {
      return Unclear(reference, "--all-versions takes the name of a mapping, without a version");
    }
    PHIMAP_RETURN_IF_ERROR(context.client.DeleteMapping(reference));
    *context.console.stream << reference << " is deleted with all its versions" << std::endl;
    return absl::OkStatus();
  }
  if (!has_version) {
    return Unclear(reference, "give a version, such as letters@7, or use --all-versions");
  }
  PHIMAP_RETURN_IF_ERROR(context.client.DeleteVersion(reference, arguments.give_up_rollback));
  *context.console.stream << reference << " is deleted" << std::endl;
  return absl::OkStatus();
}

}  // namespace

Command AddDelete(CLI::App& app) {
  auto arguments = std::make_shared<DeleteArguments>();
  DeleteArguments& erase = *arguments;
  CLI::App* command =
      app.add_subcommand("delete", "Delete a version or a mapping, unless an alias points at it");
  command
      ->add_option("NAME@VERSION", erase.reference,
                   "A version by its number or digest, or a mapping's name with --all-versions")
      ->required();
  command->add_flag("--all-versions", erase.all_versions,
                    "Delete the mapping with all its versions; their numbers are not used again");
  command->add_flag("--give-up-rollback", erase.give_up_rollback,
                    "Delete the version even if `phimap alias rollback` would return to it");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunDelete(*arguments, context); }};
}

}  // namespace phimap::cli
