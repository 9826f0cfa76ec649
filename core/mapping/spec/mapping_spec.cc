#include "core/mapping/spec/mapping_spec.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/parameter.h"
#include "core/landmark/split.h"
#include "core/mapping/spec/mapping_parameters.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

const MappingParameter& ParameterOf(absl::string_view name) {
  const MappingParameter* parameter = FindMappingParameter(name);
  PHIMAP_CHECK(parameter != nullptr);
  return *parameter;
}

const CountRule& RuleOf(absl::string_view name) {
  for (const CountRule* rule : CountRules()) {
    if (rule->name == name) return *rule;
  }
  PHIMAP_CHECK(false);
}

void Assign(const MappingParameter& parameter, const ParameterValues& values, MappingSpec& spec) {
  const absl::string_view name = parameter.described.name;
  if (!values.Has(name)) return;
  if (const auto* member = std::get_if<int64_t MappingSpec::*>(&parameter.field)) {
    spec.** member = values.Integer(name);
  } else if (const auto* member = std::get_if<double MappingSpec::*>(&parameter.field)) {
    spec.** member = values.Number(name);
  } else if (const auto* member = std::get_if<bool MappingSpec::*>(&parameter.field)) {
    spec.** member = values.Boolean(name);
  } else if (const auto* found = std::get_if<FoundField>(&parameter.field)) {
    if (values.IsCall(name)) {
      const ParameterValues call = values.CallValues(name);
      const CountRule& rule = RuleOf(values.Argument(name).call);
      spec.*found->count = call.Integer("most");
      spec.*found->rule = &rule;
      spec.*found->goal = call.Number(rule.goal.name);
    } else {
      spec.*found->count = values.Integer(name);
    }
  } else {
    std::get<WordField>(parameter.field).set(spec, values.WordIndex(name));
  }
}

absl::Status CheckCountRule(const MappingSpec& spec) {
  if (spec.count_rule == nullptr) return absl::OkStatus();
  const auto refused = [&](absl::string_view field, absl::string_view why,
                           const std::string& expected) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kParameterNotApplicable, field,
                     absl::StrCat("cannot be combined with landmarks=", spec.count_rule->name,
                                  "(…): ", why, "; expected ", expected));
  };
  if (!spec.kind->takes_count_rule) {
    return refused("landmarks",
                   absl::StrCat(spec.kind->name,
                                " needs a fixed number, because its axes depend on all "
                                "landmarks together"),
                   ListOfFamilies([](const Family& kind) { return kind.takes_count_rule; }));
  }
  if (!spec.policy->no_count_rule.empty()) {
    return refused(
        "policy", spec.policy->no_count_rule,
        ListOfPolicies([](const LandmarkPolicy& policy) { return policy.no_count_rule.empty(); }));
  }
  if (spec.pool_rows == 0 || spec.pool_rows >= kMinDecidedPool) return absl::OkStatus();
  return ParameterOutOfRange(
      "pool_rows", "a tenth of the pool, at least 20 rows, decides how many landmarks suffice: ",
      kMinDecidedPool, kMaxPoolRows, spec.pool_rows);
}

absl::Status CheckPool(const MappingSpec& spec) {
  if (spec.pool_rows == 0 || spec.pool_rows >= spec.least_landmarks()) return absl::OkStatus();
  return ParameterOutOfRange("pool_rows", "at least `landmarks`: ", spec.landmarks, kMaxPoolRows,
                             spec.pool_rows);
}

}  // namespace

absl::Status NoSuchParameter(const Family& family, absl::string_view parameter) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kParameterNotApplicable, parameter,
                   absl::StrCat(family.name, " has no parameter '", parameter, "'; it has ",
                                absl::StrJoin(family.parameters, ", ")));
}

absl::Status ParameterOutOfRange(absl::string_view parameter, absl::string_view why, int64_t least,
                                 int64_t largest, int64_t actual) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, parameter,
                   absl::StrCat(why, "expected ", least, " to ", largest, ", got ", actual),
                   {{"limit", absl::StrCat(largest)}, {"actual", absl::StrCat(actual)}});
}

absl::StatusOr<MappingSpec> MappingSpec::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  ExpressionScanner scanner(text);
  PHIMAP_ASSIGN_OR_RETURN(const ParsedCall call,
                          ParsedCall::Parse(scanner, absl::StrCat("a family: ", ListOfFamilies())));
  if (!scanner.AtEnd()) return scanner.Expected("the end");
  MappingSpec spec;
  spec.kind = FindFamily(call.name());
  if (spec.kind == nullptr) {
    return ExpressionError(call.column(), absl::StrCat("unknown family '", call.name(),
                                                       "'; expected ", ListOfFamilies()));
  }
  std::vector<Parameter> described;
  for (const absl::string_view name : spec.kind->parameters) {
    described.push_back(ParameterOf(name).described);
  }
  PHIMAP_ASSIGN_OR_RETURN(const ParameterValues values, ParameterValues::Take(call, described));
  for (const absl::string_view name : spec.kind->parameters) {
    Assign(ParameterOf(name), values, spec);
  }
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

absl::Status MappingSpec::Validate() const {
  for (const MappingParameter& parameter : MappingParameters()) {
    if (!Has(parameter.described.name)) {
      if (!parameter.IsDefault(*this)) return NoSuchParameter(*kind, parameter.described.name);
      continue;
    }
    PHIMAP_RETURN_IF_ERROR(parameter.CheckRange(*this));
  }
  PHIMAP_RETURN_IF_ERROR(CheckCountRule(*this));
  PHIMAP_RETURN_IF_ERROR(CheckPool(*this));
  return kind->validate == nullptr ? absl::OkStatus() : kind->validate(*this);
}

std::string MappingSpec::ToText() const {
  std::vector<std::string> parameters;
  for (const absl::string_view name : kind->parameters) {
    const MappingParameter& parameter = ParameterOf(name);
    if (!parameter.always_written && parameter.IsDefault(*this)) continue;
    parameters.push_back(absl::StrCat(name, "=", parameter.ValueText(*this)));
  }
  return absl::StrCat(kind->name, "(", absl::StrJoin(parameters, ", "), ")");
}

}  // namespace phimap
