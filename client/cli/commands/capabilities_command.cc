// `phimap capabilities`: what a server can build and learn.
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/command_line.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct CapabilitiesArguments {
  // "families", "kernels", "policies" or "learners"; empty: all kinds.
  std::string kind;
  // Name of an entry of that kind; empty for all.
  std::string name;
  bool json = false;
};

using Kind = google::protobuf::RepeatedPtrField<v1::Capability>;

struct NamedKind {
  const char* name;
  Kind* (v1::ListCapabilitiesResponse::*mutable_list)();
};

constexpr NamedKind kKinds[] = {
    {"families", &v1::ListCapabilitiesResponse::mutable_families},
    {"kernels", &v1::ListCapabilitiesResponse::mutable_kernels},
    {"policies", &v1::ListCapabilitiesResponse::mutable_policies},
    {"learners", &v1::ListCapabilitiesResponse::mutable_learners},
};

// Reduces `list` to the capability `name`; kNotFound lists the names that exist.
absl::Status KeepOnly(const std::string& name, const char* kind, Kind& list) {
  std::vector<std::string> names;
  for (const v1::Capability& capability : list) names.push_back(capability.name());
  for (int i = list.size() - 1; i >= 0; --i) {
    if (list.Get(i).name() != name) list.DeleteSubrange(i, 1);
  }
  if (!list.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("NAME: no '", name, "' among the server's ", kind,
                                          "; expected one of ", absl::StrJoin(names, ", ")));
}

// Prints each name with one line of description or, if a kind is given, with its parameters. As
// JSON, prints a ListCapabilitiesResponse that is restricted to the requested entries.
absl::Status RunCapabilities(const CapabilitiesArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(v1::ListCapabilitiesResponse all, context.client.ListCapabilities());
  const Kind* chosen = nullptr;
  for (const NamedKind& kind : kKinds) {
    Kind& list = *(all.*kind.mutable_list)();
    if (arguments.kind != kind.name) {
      if (!arguments.kind.empty()) list.Clear();
      continue;
    }
    if (!arguments.name.empty()) {
      PHIMAP_RETURN_IF_ERROR(KeepOnly(arguments.name, kind.name, list));
    }
    chosen = &list;
  }
  if (arguments.json) return PrintJson(all, context.out);
  context.out << (chosen == nullptr ? RenderCapabilities(all, context.console.width)
                                    : RenderKind(*chosen, context.console.width));
  return absl::OkStatus();
}

}  // namespace

Command AddCapabilities(CLI::App& app) {
  auto arguments = std::make_shared<CapabilitiesArguments>();
  CLI::App* command = app.add_subcommand(
      "capabilities",
      "List the families of mappings, kernels, policies and learners of the server");
  std::vector<std::string> kinds;
  for (const NamedKind& kind : kKinds) kinds.emplace_back(kind.name);
  command
      ->add_option("KIND", arguments->kind,
                   "families, kernels, policies or learners, to see their parameters")
      ->check(OneOf(kinds));
  command->add_option("NAME", arguments->name, "Name of one entry of KIND (default: all)");
  command->add_flag("--json", arguments->json, "Print the entries as JSON");
  return {
      .app = command,
      .run = [arguments](CommandContext& context) { return RunCapabilities(*arguments, context); },
      .json = &arguments->json};
}

}  // namespace phimap::cli
