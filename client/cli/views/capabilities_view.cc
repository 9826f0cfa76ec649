#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"

namespace phimap::cli {
namespace {

// Name and default of a parameter.
constexpr char kParameterRow[] = "    %-*s  %-*s  ";

using Capabilities = google::protobuf::RepeatedPtrField<v1::Capability>;

void RenderNames(absl::string_view kind, const Capabilities& capabilities, int width,
                 std::string& out) {
  size_t longest = 0;
  for (const v1::Capability& capability : capabilities) {
    longest = std::max(longest, capability.name().size());
  }
  absl::StrAppend(&out, kind, "\n");
  for (const v1::Capability& capability : capabilities) {
    AppendParagraph(out, absl::StrFormat("  %-*s  ", longest, capability.name()), capability.line(),
                    width);
  }
}

std::string DefaultText(const v1::ParameterInfo& parameter) {
  if (parameter.required()) return "required";
  return parameter.default_value().empty() ? "-" : parameter.default_value();
}

std::string MeaningText(const v1::ParameterInfo& parameter) {
  std::string text = parameter.expected();
  if (!parameter.unit().empty()) absl::StrAppend(&text, ", in ", parameter.unit());
  if (!parameter.line().empty()) absl::StrAppend(&text, ": ", parameter.line());
  return text;
}

void RenderParameters(const v1::Capability& capability, int width, std::string& out) {
  if (capability.parameters().empty()) return;
  const std::string names = "parameter";
  const std::string defaults = "default";
  size_t name_width = names.size();
  size_t default_width = defaults.size();
  for (const v1::ParameterInfo& parameter : capability.parameters()) {
    name_width = std::max(name_width, parameter.name().size());
    default_width = std::max(default_width, DefaultText(parameter).size());
  }
  AppendParagraph(out, absl::StrFormat(kParameterRow, name_width, names, default_width, defaults),
                  "value", width);
  for (const v1::ParameterInfo& parameter : capability.parameters()) {
    AppendParagraph(out,
                    absl::StrFormat(kParameterRow, name_width, parameter.name(), default_width,
                                    DefaultText(parameter)),
                    MeaningText(parameter), width);
  }
}

// Returns the leaf kernels that may be used alone with `family`; "" if no other family takes more,
// because the list would then say nothing.
std::string LeafKernelsText(const v1::Capability& family, const Capabilities& families) {
  int most = 0;
  for (const v1::Capability& other : families) most = std::max(most, other.leaf_kernels_size());
  return family.leaf_kernels_size() < most ? absl::StrJoin(family.leaf_kernels(), ", ") : "";
}

// Writes a line such as "kernels: positive semidefinite", unless the text is empty.
void RenderFact(absl::string_view name, absl::string_view text, int width, std::string& out) {
  if (!text.empty()) AppendParagraph(out, absl::StrCat("    ", name, ": "), text, width);
}

}  // namespace

std::string RenderCapabilities(const v1::ListCapabilitiesResponse& all, int width) {
  std::string out;
  RenderNames("families", all.families(), width, out);
  RenderNames("kernels", all.kernels(), width, out);
  RenderNames("policies", all.policies(), width, out);
  RenderNames("learners", all.learners(), width, out);
  return out;
}

std::string RenderKind(const Capabilities& capabilities, int width) {
  std::string out;
  for (const v1::Capability& capability : capabilities) {
    AppendParagraph(out, absl::StrCat(capability.name(), "  "), capability.line(), width);
    RenderFact("formula", capability.formula(), width, out);
    RenderFact("kernels", capability.kernels(), width, out);
    RenderFact("leaf kernels", LeafKernelsText(capability, capabilities), width, out);
    RenderFact("default kernel", capability.default_kernel(), width, out);
    RenderFact("guarantee", capability.theorem(), width, out);
    if (capability.learns_from_kernel()) {
      RenderFact("learns from", "raw rows and the version's kernel", width, out);
    }
    if (capability.is_default()) RenderFact("default", "used if none is named", width, out);
    RenderParameters(capability, width, out);
  }
  return out;
}

}  // namespace phimap::cli
