// `phimap delete`.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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

absl::Status DeleteAll(const std::string& name, CommandContext& context) {
  if (name.find('@') != std::string::npos) {
    return Unclear(name, "--all-versions takes the name of a mapping, without a version");
  }
  PHIMAP_RETURN_IF_ERROR(context.client.DeleteMapping(name));
  *context.console.stream << name << " is deleted with all its versions" << std::endl;
  return absl::OkStatus();
}

absl::Status DeleteOne(const std::string& mapping, int64_t version,
                       const DeleteArguments& arguments, CommandContext& context) {
  PHIMAP_RETURN_IF_ERROR(
      context.client.DeleteVersion(mapping, version, arguments.give_up_rollback));
  *context.console.stream << mapping << "@" << version << " is deleted" << std::endl;
  return absl::OkStatus();
}

// Deletes a version, or a mapping with all its versions. A version must be given by its number or
// digest. A bare name does not suffice, nor does an alias, which may move before it is looked up.
absl::Status RunDelete(const DeleteArguments& arguments, CommandContext& context) {
  const std::string& reference = arguments.reference;
  if (arguments.all_versions) return DeleteAll(reference, context);
  const size_t at = reference.find('@');
  if (at == std::string::npos) {
    return Unclear(reference, "give a version, such as letters@7, or use --all-versions");
  }
  const std::string number = reference.substr(at + 1);
  int64_t version = 0;
  if (absl::StartsWith(number, "sha256:")) {
    // Numbers are never reused, so the digest of this number cannot change.
    PHIMAP_ASSIGN_OR_RETURN(const v1::Version found, context.client.GetVersion(reference));
    return DeleteOne(found.ref().mapping(), found.ref().number(), arguments, context);
  }
  if (!std::all_of(number.begin(), number.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(number, &version)) {
    return Unclear(
        reference,
        "give the number or digest of a version; `phimap alias delete` deletes an alias");
  }
  return DeleteOne(reference.substr(0, at), version, arguments, context);
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
