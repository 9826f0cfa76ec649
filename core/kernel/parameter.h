// Parameters of calls in the text form, `name(parameter=value, …)`. Each has one descriptor, which
// parsing, canonical texts, help and ListCapabilities read.
#ifndef PHIMAP_CORE_KERNEL_PARAMETER_H_
#define PHIMAP_CORE_KERNEL_PARAMETER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/kernel/call_syntax.h"

namespace phimap {

enum class ParameterType {
  kInteger,  // 5
  kNumber,   // 0.5, or one of Parameter::words
  kWord,     // one of Parameter::words
  kBoolean,  // true or false
  kNumbers,  // [1, 2], or one of Parameter::words
  kMatrix,   // [1, 2; 2, 5]
  kColumns,  // 0:8 (columns 0 to 7), or 8
  kText,     // any word
};

struct ParameterCall;

// Immutable, meant for static tables: views point to texts that live forever.
struct Parameter {
  // The value that applies if a call does not give the parameter.
  enum class Absent {
    kDefault,   // default_text
    kRequired,  // nothing: the call is refused
    kFromData,  // a value that is chosen when the data are known
    kNothing,   // the parameter has no value
  };
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  absl::string_view name;
  ParameterType type = ParameterType::kNumber;
  Absent absent = Absent::kDefault;
  absl::string_view default_text = "";
  // Bounds of integers, numbers, and each number of a list: least ≤ value ≤ largest, or least <
  // value if `above_least`.
  double least = -kInfinity;
  double largest = kInfinity;
  bool above_least = false;
  // All values of a word parameter. For a number or a list, the words that may be given instead.
  absl::Span<const absl::string_view> words = {};
  // Unit such as "1/length² of the inputs"; empty for pure numbers and other types.
  absl::string_view unit = "";
  // One line for people.
  absl::string_view line = "";
  // Calls that may replace the value, such as auto(residual=0.01).
  absl::Span<const ParameterCall> calls = {};

  // Describes the permitted values: "an integer from 1 to 64", "a number > 0, scale or median".
  std::string Expected() const;
  // Whether the number is within the bounds.
  bool Allows(double number) const;
  // Returns the call of that name from `calls`, or null.
  const ParameterCall* FindCall(absl::string_view call) const;
  // Returns "required", "from the data", "none", or default_text.
  absl::string_view DefaultText() const;
};

// A call as the value of a parameter.
struct ParameterCall {
  absl::string_view name;
  absl::Span<const Parameter> parameters;
};

// The values of one call. Immutable except for Resolve and SetNumbers. A parameter that the call
// does not give has its default. Accessors require that a parameter of that name exists.
class ParameterValues {
 public:
  ParameterValues() = default;
  // Reads the call's arguments. INVALID_ARGUMENT (EXPRESSION_INVALID) names the column and the
  // expected text, and has the parameter as field. `parameters` must outlive the values.
  static absl::StatusOr<ParameterValues> Take(const ParsedCall& call,
                                              absl::Span<const Parameter> parameters);

  // Whether there is a parameter of that name.
  bool Knows(absl::string_view name) const;
  // Whether the parameter has a value, given or by default.
  bool Has(absl::string_view name) const { return Of(name).present; }
  // Returns the number, or NaN, which equals nothing, if a word is given instead.
  double Number(absl::string_view name) const;
  int64_t Integer(absl::string_view name) const;
  bool Boolean(absl::string_view name) const { return Word(name) == "true"; }
  // Returns the word, or "" if the value is not a word.
  absl::string_view Word(absl::string_view name) const { return Of(name).argument.word; }
  // Returns the index of the word in Parameter::words.
  int WordIndex(absl::string_view name) const;
  // Returns the numbers of a list or a matrix, row after row.
  const std::vector<double>& Numbers(absl::string_view name) const {
    return Of(name).argument.list;
  }
  // Return the first column of the range, and the column after its last.
  int64_t FirstColumn(absl::string_view name) const;
  int64_t EndColumn(absl::string_view name) const;
  // Whether the value is a call, and the values of that call.
  bool IsCall(absl::string_view name) const { return Of(name).argument.is_call(); }
  ParameterValues CallValues(absl::string_view name) const;
  // Returns the argument in the text, with its position, for errors. The column is 0 for defaults.
  const CallArgument& Argument(absl::string_view name) const { return Of(name).argument; }

  // Whether any number parameter has `word` in place of a number.
  bool AnyNumberIs(absl::string_view word) const;
  // Replaces `word` by `number` in every number parameter.
  void Resolve(absl::string_view word, double number);

  // Sets a list. REQUIRES: the parameter is a list and allows the numbers; at least one.
  void SetNumbers(absl::string_view name, std::vector<double> numbers);

  // Returns every parameter that has a value, in the order of the descriptors: "gamma=0.5,
  // coef0=0".
  std::string ToText() const;

 private:
  struct Value {
    bool present = false;
    CallArgument argument;
  };
  const Value& Of(absl::string_view name) const;

  absl::Span<const Parameter> parameters_;
  std::vector<Value> values_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_PARAMETER_H_
