#include "core/kernel/parameter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

constexpr absl::string_view kBooleanWords[] = {"false", "true"};

absl::Span<const absl::string_view> WordsOf(const Parameter& parameter) {
  return parameter.type == ParameterType::kBoolean ? kBooleanWords : parameter.words;
}

// Returns the bounds as text, such as " from 1 to 64", " > 0", " >= 0" or "".
std::string RangeText(const Parameter& parameter) {
  const bool bounded = parameter.largest < Parameter::kInfinity;
  const std::string largest = NumberToText(parameter.largest);
  if (!(parameter.least > -Parameter::kInfinity)) {
    return bounded ? absl::StrCat(" <= ", largest) : "";
  }
  const std::string least = NumberToText(parameter.least);
  if (parameter.above_least) {
    return absl::StrCat(" > ", least, bounded ? absl::StrCat(", at most ", largest) : "");
  }
  return bounded ? absl::StrCat(" from ", least, " to ", largest) : absl::StrCat(" >= ", least);
}

// Returns the description of a value, with the words that may be given instead.
std::string OrWords(const Parameter& parameter, const std::string& value) {
  if (parameter.words.empty()) return value;
  std::vector<absl::string_view> all = {value};
  all.insert(all.end(), parameter.words.begin(), parameter.words.end());
  return Alternatives(all);
}

bool IsWordOf(const Parameter& parameter, const CallArgument& argument) {
  const auto words = parameter.words;
  return !argument.word.empty() &&
         std::find(words.begin(), words.end(), argument.word) != words.end();
}

// Describes the permitted values that are not calls.
std::string ExpectedOf(const Parameter& parameter) {
  switch (parameter.type) {
    case ParameterType::kInteger:
      return absl::StrCat("an integer", RangeText(parameter));
    case ParameterType::kNumber:
      return OrWords(parameter, absl::StrCat("a number", RangeText(parameter)));
    case ParameterType::kWord:
    case ParameterType::kBoolean:
      return absl::StrCat("one of ", absl::StrJoin(WordsOf(parameter), ", "));
    case ParameterType::kNumbers:
      return OrWords(
          parameter,
          absl::StrCat("a list, [a, b]", RangeText(parameter).empty()
                                             ? ""
                                             : absl::StrCat(", of numbers", RangeText(parameter))));
    case ParameterType::kMatrix:
      return "a square list, [a, b; b, c]";
    case ParameterType::kColumns:
      return "a range of columns such as 0:8, which begins at 0 and ends before 8, or one column "
             "such as 8";
    case ParameterType::kText:
      return "a word";
  }
  PHIMAP_CHECK(false);
}

bool IsInteger(double value) { return value == std::floor(value) && std::abs(value) <= 0x1p53; }

absl::Status Unexpected(const Parameter& parameter, const CallArgument& argument) {
  const std::string expected = parameter.Expected();
  return ExpressionError(argument.value_column,
                         absl::StrCat(parameter.name, " is ", expected,
                                      expected.find(',') == std::string::npos ? ", got " : "; got ",
                                      argument.ValueText()),
                         parameter.name);
}

absl::Status CheckNumber(const ParsedCall& call, const Parameter& parameter,
                         const CallArgument& argument) {
  if (IsWordOf(parameter, argument)) return absl::OkStatus();
  if (!argument.is_number) return Unexpected(parameter, argument);
  if (parameter.Allows(argument.number)) return absl::OkStatus();
  return ExpressionError(argument.value_column,
                         absl::StrCat(parameter.name, " of ", call.name(), " is",
                                      RangeText(parameter), ", got ", argument.ValueText()),
                         parameter.name);
}

absl::Status CheckNumbers(const ParsedCall& call, const Parameter& parameter,
                          const CallArgument& argument) {
  if (IsWordOf(parameter, argument)) return absl::OkStatus();
  const int64_t size = static_cast<int64_t>(argument.list.size());
  const bool matrix = parameter.type == ParameterType::kMatrix;
  if (size == 0 || (!matrix && argument.list_rows != 1) ||
      (matrix && argument.list_rows * argument.list_rows != size)) {
    return ExpressionError(
        argument.value_column,
        absl::StrCat(parameter.name, " of ", call.name(), " is ", parameter.Expected(), ", got ",
                     size == 0 ? argument.ValueText()
                               : absl::StrCat(CountOf(argument.list_rows, "row"), " of ",
                                              CountOf(size / argument.list_rows, "number"))),
        parameter.name);
  }
  for (int64_t i = 0; i < size; ++i) {
    if (parameter.Allows(argument.list[i])) continue;
    return ExpressionError(
        argument.value_column,
        absl::StrCat("each number of ", parameter.name, " is", RangeText(parameter), ", got ",
                     NumberToText(argument.list[i]), " as number ", i + 1),
        parameter.name);
  }
  return absl::OkStatus();
}

absl::Status CheckColumns(const Parameter& parameter, const CallArgument& argument) {
  const double begin = argument.number;
  const double end = argument.is_range ? argument.range_end : begin + 1;
  const bool valid = argument.is_number || argument.is_range;
  if (valid && IsInteger(begin) && IsInteger(end) && 0 <= begin && begin < end && end <= 65536) {
    return absl::OkStatus();
  }
  return Unexpected(parameter, argument);
}

// An error within the call has the outer parameter as field. REQUIRES: the argument is a call.
absl::Status CheckCall(const Parameter& parameter, const CallArgument& argument) {
  const ParameterCall* const call = parameter.FindCall(argument.call);
  if (call == nullptr) return Unexpected(parameter, argument);
  return WithField(ParameterValues::Take(ParsedCall::Of(argument), call->parameters).status(),
                   parameter.name);
}

absl::Status CheckValue(const ParsedCall& call, const Parameter& parameter,
                        const CallArgument& argument) {
  if (argument.is_call()) return CheckCall(parameter, argument);
  if (argument.is_range && parameter.type != ParameterType::kColumns) {
    return Unexpected(parameter, argument);
  }
  switch (parameter.type) {
    case ParameterType::kInteger:
      if (argument.is_number && IsInteger(argument.number) && parameter.Allows(argument.number)) {
        return absl::OkStatus();
      }
      return Unexpected(parameter, argument);
    case ParameterType::kNumber:
      return CheckNumber(call, parameter, argument);
    case ParameterType::kWord:
    case ParameterType::kBoolean: {
      const auto words = WordsOf(parameter);
      if (std::find(words.begin(), words.end(), argument.word) != words.end()) {
        return absl::OkStatus();
      }
      return Unexpected(parameter, argument);
    }
    case ParameterType::kNumbers:
    case ParameterType::kMatrix:
      return CheckNumbers(call, parameter, argument);
    case ParameterType::kColumns:
      return CheckColumns(parameter, argument);
    case ParameterType::kText:
      return argument.word.empty() ? Unexpected(parameter, argument) : absl::OkStatus();
  }
  PHIMAP_CHECK(false);
}

// Parses the default. REQUIRES: the parameter accepts it.
CallArgument DefaultOf(const Parameter& parameter) {
  ExpressionScanner scanner(parameter.default_text);
  absl::StatusOr<CallArgument> argument = ParseValue(scanner);
  PHIMAP_CHECK(argument.ok() && scanner.AtEnd());
  return *std::move(argument);
}

std::string ListText(const CallArgument& argument) {
  const size_t columns = argument.list.size() / static_cast<size_t>(argument.list_rows);
  std::string text = "[";
  for (size_t i = 0; i < argument.list.size(); ++i) {
    if (i > 0) absl::StrAppend(&text, i % columns == 0 ? "; " : ", ");
    absl::StrAppend(&text, NumberToText(argument.list[i]));
  }
  return text + "]";
}

std::string TextOf(const Parameter& parameter, const CallArgument& argument) {
  if (argument.is_call()) {
    const absl::StatusOr<ParameterValues> values = ParameterValues::Take(
        ParsedCall::Of(argument), parameter.FindCall(argument.call)->parameters);
    return absl::StrCat(argument.call, "(", values->ToText(), ")");
  }
  if (argument.list_rows > 0) return ListText(argument);
  if (argument.is_range && argument.range_end == argument.number + 1) {
    return NumberToText(argument.number);
  }
  return argument.is_number || argument.is_range ? argument.ValueText() : argument.word;
}

}  // namespace

std::string Parameter::Expected() const {
  std::string text = ExpectedOf(*this);
  for (const ParameterCall& call : calls) {
    std::vector<std::string> required;
    for (const Parameter& parameter : call.parameters) {
      if (parameter.absent != Absent::kRequired) continue;
      required.push_back(absl::StrCat(parameter.name, "=…"));
    }
    absl::StrAppend(&text, ", or ", call.name, "(", absl::StrJoin(required, ", "), ")");
  }
  return text;
}

absl::string_view Parameter::DefaultText() const {
  switch (absent) {
    case Absent::kDefault:
      return default_text;
    case Absent::kRequired:
      return "required";
    case Absent::kFromData:
      return "from the data";
    case Absent::kNothing:
      return "none";
  }
  PHIMAP_CHECK(false);
}

bool Parameter::Allows(double number) const {
  return (above_least ? number > least : number >= least) && number <= largest;
}

const ParameterCall* Parameter::FindCall(absl::string_view call) const {
  for (const ParameterCall& one : calls) {
    if (one.name == call) return &one;
  }
  return nullptr;
}

absl::StatusOr<ParameterValues> ParameterValues::Take(const ParsedCall& call,
                                                      absl::Span<const Parameter> parameters) {
  std::vector<absl::string_view> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  PHIMAP_RETURN_IF_ERROR(call.OnlyHas(names));
  ParameterValues values;
  values.parameters_ = parameters;
  for (const Parameter& parameter : parameters) {
    Value value;
    if (const CallArgument* const given = call.Take(parameter.name); given != nullptr) {
      PHIMAP_RETURN_IF_ERROR(CheckValue(call, parameter, *given));
      value = {true, *given};
    } else if (parameter.absent == Parameter::Absent::kRequired) {
      return ExpressionError(call.column(),
                             absl::StrCat(call.name(), " needs the parameter '", parameter.name,
                                          "', ", parameter.Expected()),
                             parameter.name);
    } else if (parameter.absent == Parameter::Absent::kDefault) {
      value = {true, DefaultOf(parameter)};
    }
    values.values_.push_back(std::move(value));
  }
  return values;
}

const ParameterValues::Value& ParameterValues::Of(absl::string_view name) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return values_[i];
  }
  PHIMAP_CHECK(false);
}

bool ParameterValues::Knows(absl::string_view name) const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [&](const Parameter& parameter) { return parameter.name == name; });
}

double ParameterValues::Number(absl::string_view name) const {
  const CallArgument& argument = Of(name).argument;
  return argument.is_number ? argument.number : std::numeric_limits<double>::quiet_NaN();
}

int64_t ParameterValues::Integer(absl::string_view name) const {
  return static_cast<int64_t>(Of(name).argument.number);
}

int ParameterValues::WordIndex(absl::string_view name) const {
  const absl::string_view word = Word(name);
  for (const Parameter& parameter : parameters_) {
    if (parameter.name != name) continue;
    const auto words = WordsOf(parameter);
    const auto found = std::find(words.begin(), words.end(), word);
    PHIMAP_CHECK(found != words.end());
    return static_cast<int>(found - words.begin());
  }
  PHIMAP_CHECK(false);
}

ParameterValues ParameterValues::CallValues(absl::string_view name) const {
  for (const Parameter& parameter : parameters_) {
    if (parameter.name != name) continue;
    // Cannot fail: the call was checked when these values were read.
    const CallArgument& argument = Of(name).argument;
    return *Take(ParsedCall::Of(argument), parameter.FindCall(argument.call)->parameters);
  }
  PHIMAP_CHECK(false);
}

int64_t ParameterValues::FirstColumn(absl::string_view name) const { return Integer(name); }

int64_t ParameterValues::EndColumn(absl::string_view name) const {
  const CallArgument& argument = Of(name).argument;
  return static_cast<int64_t>(argument.is_range ? argument.range_end : argument.number + 1);
}

bool ParameterValues::AnyNumberIs(absl::string_view word) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (parameters_[i].type == ParameterType::kNumber && values_[i].argument.word == word) {
      return true;
    }
  }
  return false;
}

void ParameterValues::Resolve(absl::string_view word, double number) {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (parameters_[i].type != ParameterType::kNumber || values_[i].argument.word != word) continue;
    values_[i].argument.word.clear();
    values_[i].argument.number = number;
    values_[i].argument.is_number = true;
  }
}

void ParameterValues::SetNumbers(absl::string_view name, std::vector<double> numbers) {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (parameters_[i].name != name) continue;
    values_[i] = {.present = true, .argument = {.list = std::move(numbers), .list_rows = 1}};
    return;
  }
  PHIMAP_CHECK(false);
}

std::string ParameterValues::ToText() const {
  std::string text;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].present) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", parameters_[i].name, "=",
                    TextOf(parameters_[i], values_[i].argument));
  }
  return text;
}

}  // namespace phimap
