#include "core/mapping/spec/mapping_parameters.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/verdict.h"
#include "core/kernel/call_syntax.h"
#include "core/landmark/count_rule.h"
#include "core/landmark/landmark_policy.h"
#include "core/landmark/split.h"
#include "core/status/check.h"
#include "core/status/error.h"

namespace phimap {
namespace {

using Absent = Parameter::Absent;

// The words are in the order of their enums' values.
constexpr absl::string_view kProjections[] = {"gaussian", "sign", "sparse", "orthonormal"};
constexpr absl::string_view kForms[] = {"phase", "sincos"};
constexpr absl::string_view kServingTypes[] = {"float32", "float64"};

constexpr WordField kProjectionField = {
    [](const MappingSpec& spec) { return static_cast<int>(spec.projection); },
    [](MappingSpec& spec, int word) { spec.projection = static_cast<ProjectionKind>(word); }};

constexpr WordField kFormField = {
    [](const MappingSpec& spec) { return static_cast<int>(spec.form); },
    [](MappingSpec& spec, int word) { spec.form = static_cast<FourierForm>(word); }};

constexpr WordField kPolicyField = {
    [](const MappingSpec& spec) {
      const auto policies = LandmarkPolicies();
      return static_cast<int>(std::find(policies.begin(), policies.end(), spec.policy) -
                              policies.begin());
    },
    [](MappingSpec& spec, int word) { spec.policy = LandmarkPolicies()[word]; }};

constexpr WordField kServingTypeField = {[](const MappingSpec& spec) {
                                           if (!spec.serving_type.has_value()) return -1;
                                           return *spec.serving_type == FloatType::kFloat32 ? 0 : 1;
                                         },
                                         [](MappingSpec& spec, int word) {
                                           spec.serving_type.reset();
                                           if (word >= 0)
                                             spec.serving_type = word == 0 ? FloatType::kFloat32
                                                                           : FloatType::kFloat64;
                                         }};

// Returns the calls that may be given instead of the number of landmarks. Each call has two
// parameters: the goal of its rule, and `most`.
absl::Span<const ParameterCall> CountCalls() {
  static const auto& parameters = *[] {
    auto* made = new std::vector<std::array<Parameter, 2>>;
    for (const CountRule* rule : CountRules()) {
      made->push_back({rule->goal,
                       {.name = "most",
                        .type = ParameterType::kInteger,
                        .default_text = "2048",
                        .least = 1,
                        .largest = static_cast<double>(kMaxLandmarks),
                        .line = "maximum number of landmarks"}});
    }
    return made;
  }();
  static const auto& calls = *[] {
    auto* made = new std::vector<ParameterCall>;
    for (size_t rule = 0; rule < parameters.size(); ++rule) {
      made->push_back({.name = CountRules()[rule]->name, .parameters = parameters[rule]});
    }
    return made;
  }();
  return calls;
}

constexpr absl::string_view kLandmarksLine =
    "number of rows with which inputs are compared, at most the number of rows of the stream";

// Returns kLandmarksLine, followed by what each rule that finds the number does.
absl::string_view LandmarksLine() {
  static const std::string& line = *[] {
    auto* made = new std::string(kLandmarksLine);
    for (const CountRule* rule : CountRules()) absl::StrAppend(made, "; ", rule->line);
    return made;
  }();
  return line;
}

Parameter Landmarks() {
  return {.name = "landmarks",
          .type = ParameterType::kInteger,
          .absent = Absent::kRequired,
          .least = 1,
          .largest = static_cast<double>(kMaxLandmarks),
          .line = LandmarksLine(),
          .calls = CountCalls()};
}

Parameter Count(absl::string_view name, int64_t least, int64_t largest, Absent absent,
                absl::string_view line) {
  return {.name = name,
          .type = ParameterType::kInteger,
          .absent = absent,
          .least = static_cast<double>(least),
          .largest = static_cast<double>(largest),
          .line = line};
}

Parameter Scale(absl::string_view name, double least, double largest, absl::string_view fallback,
                absl::string_view line) {
  return {.name = name,
          .type = ParameterType::kNumber,
          .default_text = fallback,
          .least = least,
          .largest = largest,
          .line = line};
}

Parameter OneOf(absl::string_view name, absl::Span<const absl::string_view> words,
                absl::string_view fallback, absl::string_view line) {
  return {.name = name,
          .type = ParameterType::kWord,
          .absent = fallback.empty() ? Absent::kFromData : Absent::kDefault,
          .default_text = fallback,
          .words = words,
          .line = line};
}

Parameter Switch(absl::string_view name, absl::string_view fallback, absl::string_view line) {
  return {.name = name, .type = ParameterType::kBoolean, .default_text = fallback, .line = line};
}

// Parameters of the features: their kind and number.
std::vector<MappingParameter> FeatureParameters() {
  return {
      {Landmarks(),
       FoundField{&MappingSpec::landmarks, &MappingSpec::count_rule, &MappingSpec::goal}, true},
      {Count("classes", 2, kMaxClasses, Absent::kRequired, "number of classes"),
       &MappingSpec::classes, true},
      {Count("dimensions", 1, kMaxDimensions, Absent::kRequired, "number of features"),
       &MappingSpec::dimensions, true},
      {OneOf("projection", kProjections, "gaussian", "entries of the random matrix"),
       kProjectionField, true},
      {OneOf("form", kForms, "sincos",
             "sincos: a cosine and a sine of each frequency; phase: a cosine with a random phase"),
       kFormField, true},
      {Switch("orthogonal", "false",
              "whether frequencies are orthogonal, in groups of the number of columns; for rows "
              "near each other this lowers the variance under an rbf kernel"),
       &MappingSpec::orthogonal, true},
      {Switch("centred", "true", "whether the axes go through the landmarks' mean in φ-space"),
       &MappingSpec::centred, true},
  };
}

// Parameters of the Gram matrix, of the choice of landmarks, and of serving.
std::vector<MappingParameter> BuildParameters() {
  return {
      {Scale("sparsify", 1, kMaxSparsify, "1",
             "keep one in this many entries of the Gram matrix, at random"),
       &MappingSpec::sparsify},
      {Switch("quantise", "false", "whether each kept entry is replaced by a random sign"),
       &MappingSpec::quantise},
      {Scale("rounding", 0, kMaxRounding, "0",
             "weights smaller than 1/rounding become 1/rounding or 0 at random; 0: no rounding"),
       &MappingSpec::rounding},
      {Count("input_dimensions", 1, kMaxDimensions, Absent::kNothing,
             "number of random sums and differences of columns, on which the kernel is evaluated "
             "instead of the columns"),
       &MappingSpec::input_dimensions},
      {OneOf("policy", LandmarkPolicyNames(), DefaultLandmarkPolicy().name,
             "how landmarks are chosen"),
       kPolicyField, true},
      {Count("pool_rows", 1, kMaxPoolRows, Absent::kFromData,
             "size of the uniform sample from which landmarks, and pairs for gamma=median, are "
             "drawn"),
       &MappingSpec::pool_rows},
      {Count(
           "held_out_rows", kMinVerdictRows, kMaxHeldOutRows, Absent::kNothing,
           "largest number of rows that the certificate is measured on; with few it is quick, and "
           "its intervals are wide"),
       &MappingSpec::held_out_rows},
      {OneOf("serving_type", kServingTypes, "",
             "type of the features (default: float32, or float64 if float32 errs too much on "
             "held-out rows)"),
       kServingTypeField},
  };
}

std::vector<MappingParameter> MakeParameters() {
  std::vector<MappingParameter> parameters = FeatureParameters();
  for (const MappingParameter& parameter : BuildParameters()) parameters.push_back(parameter);
  return parameters;
}

// Returns the integer member of the spec that holds the parameter; null if the parameter is not an
// integer.
const int64_t* CountOf(const MappingParameter& parameter, const MappingSpec& spec) {
  if (const auto* member = std::get_if<int64_t MappingSpec::*>(&parameter.field)) {
    return &(spec.**member);
  }
  const auto* found = std::get_if<FoundField>(&parameter.field);
  return found == nullptr ? nullptr : &(spec.*found->count);
}

absl::Status OutOfRange(const Parameter& described, absl::string_view actual) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, described.name,
                   absl::StrCat("expected ", described.Expected(), ", got ", actual),
                   {{"limit", NumberToText(described.largest)}, {"actual", std::string(actual)}});
}

}  // namespace

bool MappingParameter::IsDefault(const MappingSpec& spec) const {
  static const MappingSpec& defaults = *new MappingSpec;
  return std::visit(
      [&](const auto& member) {
        if constexpr (std::is_same_v<std::decay_t<decltype(member)>, WordField>) {
          return member.get(spec) == member.get(defaults);
        } else if constexpr (std::is_same_v<std::decay_t<decltype(member)>, FoundField>) {
          return spec.*member.count == defaults.*member.count && spec.*member.rule == nullptr;
        } else {
          return spec.*member == defaults.*member;
        }
      },
      field);
}

std::string MappingParameter::ValueText(const MappingSpec& spec) const {
  if (const auto* member = std::get_if<int64_t MappingSpec::*>(&field)) {
    return absl::StrCat(spec.**member);
  }
  if (const auto* member = std::get_if<double MappingSpec::*>(&field)) {
    return NumberToText(spec.**member);
  }
  if (const auto* member = std::get_if<bool MappingSpec::*>(&field)) {
    return spec.**member ? "true" : "false";
  }
  if (const auto* found = std::get_if<FoundField>(&field)) {
    const std::string count = absl::StrCat(spec.*found->count);
    const CountRule* const rule = spec.*found->rule;
    if (rule == nullptr) return count;
    return absl::StrCat(rule->name, "(", rule->goal.name, "=", NumberToText(spec.*found->goal),
                        ", most=", count, ")");
  }
  const int word = std::get<WordField>(field).get(spec);
  return word < 0 ? "" : std::string(described.words[word]);
}

absl::Status MappingParameter::CheckRange(const MappingSpec& spec) const {
  if (described.absent != Absent::kRequired && IsDefault(spec)) return absl::OkStatus();
  const auto* found = std::get_if<FoundField>(&field);
  const CountRule* const rule = found == nullptr ? nullptr : spec.*found->rule;
  if (rule != nullptr && !rule->goal.Allows(spec.*found->goal)) {
    return OutOfRange(described, ValueText(spec));
  }
  if (const int64_t* const value = CountOf(*this, spec)) {
    if (*value >= static_cast<int64_t>(described.least) &&
        *value <= static_cast<int64_t>(described.largest)) {
      return absl::OkStatus();
    }
    return OutOfRange(described, absl::StrCat(*value));
  }
  if (const auto* member = std::get_if<double MappingSpec::*>(&field)) {
    const double value = spec.**member;
    if (value >= described.least && value <= described.largest) return absl::OkStatus();
    return OutOfRange(described, NumberToText(value));
  }
  return absl::OkStatus();
}

const std::vector<MappingParameter>& MappingParameters() {
  static const std::vector<MappingParameter>& parameters =
      *new std::vector<MappingParameter>(MakeParameters());
  return parameters;
}

Parameter DescribeParameter(const Family& family, absl::string_view name) {
  const MappingParameter* const parameter = FindMappingParameter(name);
  PHIMAP_CHECK(parameter != nullptr);
  Parameter described = parameter->described;
  if (!family.takes_count_rule && std::holds_alternative<FoundField>(parameter->field)) {
    described.calls = {};
    described.line = kLandmarksLine;
  }
  if (name == "dimensions" && !family.dimensions_line.empty()) {
    described.line = family.dimensions_line;
  }
  return described;
}

const MappingParameter* FindMappingParameter(absl::string_view name) {
  for (const MappingParameter& parameter : MappingParameters()) {
    if (parameter.described.name == name) return &parameter;
  }
  return nullptr;
}

}  // namespace phimap
