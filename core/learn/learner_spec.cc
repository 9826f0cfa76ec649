#include "core/learn/learner_spec.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/kernel/call_syntax.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Names = absl::Span<const absl::string_view>;

// In the order of their enums.
constexpr std::array<absl::string_view, 7> kKinds = {"perceptron",   "winnow",        "linear_svm",
                                                     "weak_learner", "one_parameter", "kernel_sgd",
                                                     "kernel_svm"};
constexpr std::array<absl::string_view, 4> kStrategies = {"features", "stored_features", "kernel",
                                                          "gram"};
constexpr std::array<absl::string_view, 2> kBooleans = {"false", "true"};

// The parameters of each kind, in the order of its text.
constexpr absl::string_view kOfPerceptron[] = {"epochs", "average", "bias"};
constexpr absl::string_view kOfWinnow[] = {"rate", "threshold", "epochs", "bias"};
constexpr absl::string_view kOfLinearSvm[] = {"C", "tolerance", "bias"};
constexpr absl::string_view kOfWeakLearner[] = {"rounds", "margin", "draws", "bias"};
constexpr absl::string_view kOfOneParameter[] = {"C", "tolerance", "epochs"};
constexpr absl::string_view kOfKernelSgd[] = {"strategy", "rate", "epochs"};
constexpr absl::string_view kOfKernelSvm[] = {"C", "tolerance"};

Names ParametersOf(LearnerKind kind) {
  switch (kind) {
    case LearnerKind::kPerceptron:
      return kOfPerceptron;
    case LearnerKind::kWinnow:
      return kOfWinnow;
    case LearnerKind::kLinearSvm:
      return kOfLinearSvm;
    case LearnerKind::kWeakLearner:
      return kOfWeakLearner;
    case LearnerKind::kOneParameter:
      return kOfOneParameter;
    case LearnerKind::kKernelSgd:
      return kOfKernelSgd;
    case LearnerKind::kKernelSvm:
      return kOfKernelSvm;
  }
  return {};
}

// What an integer parameter is and may be.
struct IntegerParameter {
  absl::string_view name;
  int64_t LearnerSpec::*value;
  int64_t low;
  int64_t high;
};
constexpr IntegerParameter kIntegers[] = {
    {"epochs", &LearnerSpec::epochs, 1, 1'000'000},
    {"rounds", &LearnerSpec::rounds, 1, 100'000},
    {"draws", &LearnerSpec::draws, 1, 1'000'000},
};

// What a number is and may be: in [low, high], or in (low, high].
struct NumberParameter {
  absl::string_view name;
  double LearnerSpec::*value;
  bool over_low;
  double low;
  double high;
};
constexpr NumberParameter kNumbers[] = {
    {"C", &LearnerSpec::C, true, 0, 1e12},
    {"tolerance", &LearnerSpec::tolerance, true, 0, 1},
    {"rate", &LearnerSpec::rate, true, 0, 1e6},
    {"threshold", &LearnerSpec::threshold, false, -1e6, 1e6},
    {"bias", &LearnerSpec::bias, false, 0, 1e6},
    {"margin", &LearnerSpec::margin, true, 0, 1},
};

template <typename Parameter, size_t n>
const Parameter* Find(const Parameter (&parameters)[n], absl::string_view name) {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

// "a, b or c"
std::string AnyOf(Names names) {
  return absl::StrCat(absl::StrJoin(names.first(names.size() - 1), ", "), " or ", names.back());
}

absl::StatusOr<LearnerKind> KindOf(const Call& call) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (call.name() == kKinds[i]) return static_cast<LearnerKind>(i);
  }
  return ExpressionError(
      call.column(), absl::StrCat("unknown learner '", call.name(), "'; expected ", AnyOf(kKinds)));
}

absl::Status TakeParameter(const Call& call, absl::string_view name, LearnerSpec& spec) {
  if (const IntegerParameter* integer = Find(kIntegers, name)) {
    int64_t& out = spec.*integer->value;
    PHIMAP_ASSIGN_OR_RETURN(out, call.TakeInteger(name, integer->low, integer->high, false, out));
    return absl::OkStatus();
  }
  if (const NumberParameter* number = Find(kNumbers, name)) {
    double& out = spec.*number->value;
    PHIMAP_ASSIGN_OR_RETURN(out, call.TakeNumber(name, out));
    return absl::OkStatus();
  }
  if (name == "average") {
    PHIMAP_ASSIGN_OR_RETURN(const int index, call.TakeWord(name, kBooleans, spec.average ? 1 : 0));
    spec.average = index == 1;
    return absl::OkStatus();
  }
  PHIMAP_ASSIGN_OR_RETURN(const int index,
                          call.TakeWord(name, kStrategies, static_cast<int>(spec.strategy)));
  spec.strategy = static_cast<SgdStrategy>(index);
  return absl::OkStatus();
}

std::string ValueText(absl::string_view name, const LearnerSpec& spec) {
  if (const IntegerParameter* integer = Find(kIntegers, name)) {
    return absl::StrCat(spec.*integer->value);
  }
  if (const NumberParameter* number = Find(kNumbers, name)) {
    return NumberToText(spec.*number->value);
  }
  if (name == "average") return std::string(kBooleans[spec.average ? 1 : 0]);
  return std::string(SgdStrategyName(spec.strategy));
}

absl::Status OutOfRange(absl::string_view field, absl::string_view expected,
                        absl::string_view actual) {
  return MakeError(absl::StatusCode::kInvalidArgument, "OUT_OF_RANGE", field,
                   absl::StrCat("expected ", expected, ", got ", actual),
                   {{"actual", std::string(actual)}});
}

absl::Status CheckParameter(absl::string_view name, const LearnerSpec& spec) {
  if (const IntegerParameter* integer = Find(kIntegers, name)) {
    const int64_t value = spec.*integer->value;
    if (value >= integer->low && value <= integer->high) return absl::OkStatus();
    return OutOfRange(name, absl::StrCat("an integer from ", integer->low, " to ", integer->high),
                      absl::StrCat(value));
  }
  const NumberParameter* number = Find(kNumbers, name);
  if (number == nullptr) return absl::OkStatus();
  const double value = spec.*number->value;
  const bool over = number->over_low ? value > number->low : value >= number->low;
  if (over && value <= number->high) return absl::OkStatus();
  return OutOfRange(
      name,
      absl::StrCat(number->over_low ? "a number over " : "a number from ",
                   NumberToText(number->low), number->over_low ? ", at most " : " to ",
                   NumberToText(number->high)),
      NumberToText(value));
}

}  // namespace

absl::string_view LearnerKindName(LearnerKind kind) { return kKinds[static_cast<size_t>(kind)]; }

absl::string_view SgdStrategyName(SgdStrategy strategy) {
  return kStrategies[static_cast<size_t>(strategy)];
}

LearnerSpec LearnerSpec::Of(LearnerKind kind) {
  LearnerSpec spec;
  spec.kind = kind;
  if (kind == LearnerKind::kWeakLearner) spec.bias = 0;
  if (kind == LearnerKind::kOneParameter) spec.epochs = 1000;
  if (kind == LearnerKind::kKernelSgd) spec.epochs = 20;
  if (kind == LearnerKind::kKernelSvm) spec.tolerance = 0.001;
  return spec;
}

bool LearnerSpec::Has(absl::string_view parameter) const {
  const Names names = ParametersOf(kind);
  return std::find(names.begin(), names.end(), parameter) != names.end();
}

absl::StatusOr<LearnerSpec> LearnerSpec::Parse(absl::string_view text) {
  PHIMAP_RETURN_IF_ERROR(CheckExpressionLength(text));
  ExpressionScanner scanner(text);
  PHIMAP_ASSIGN_OR_RETURN(const Call call,
                          Call::Parse(scanner, absl::StrCat("a learner: ", AnyOf(kKinds))));
  if (!scanner.AtEnd()) return scanner.Expected("the end");
  PHIMAP_ASSIGN_OR_RETURN(const LearnerKind kind, KindOf(call));
  LearnerSpec spec = Of(kind);
  const Names names = ParametersOf(kind);
  PHIMAP_RETURN_IF_ERROR(call.OnlyHas(names));
  for (const absl::string_view name : names) {
    PHIMAP_RETURN_IF_ERROR(TakeParameter(call, name, spec));
  }
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

absl::Status LearnerSpec::Validate() const {
  for (const absl::string_view name : ParametersOf(kind)) {
    PHIMAP_RETURN_IF_ERROR(CheckParameter(name, *this));
  }
  return absl::OkStatus();
}

std::string LearnerSpec::ToText() const {
  std::vector<std::string> parameters;
  for (const absl::string_view name : ParametersOf(kind)) {
    parameters.push_back(absl::StrCat(name, "=", ValueText(name, *this)));
  }
  return absl::StrCat(LearnerKindName(kind), "(", absl::StrJoin(parameters, ", "), ")");
}

}  // namespace phimap
