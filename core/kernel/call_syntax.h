// The syntax that kernels and mappings share: calls with named arguments, `name(key=value,
// key=value)` or, without arguments, `name`. A value is a number, a range `0:8`, a word, a list
// `[1, 2; 3, 4]`, or a call. The values of such an inner call cannot be calls. Errors give the
// column in the text.
#ifndef PHIMAP_CORE_KERNEL_CALL_SYNTAX_H_
#define PHIMAP_CORE_KERNEL_CALL_SYNTAX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace phimap {

// Longest text form of a kernel or a mapping, in bytes.
inline constexpr int64_t kMaxExpressionBytes = 4096;

// Scans a text once, from left to right. Columns are bytes, counted from 1 (the syntax is ASCII).
// Spaces and tabs only separate tokens. Not thread-safe. The text must outlive the scanner.
class ExpressionScanner {
 public:
  explicit ExpressionScanner(absl::string_view text) : text_(text) {}

  // Returns the column of the next character that is not a space.
  int column();
  bool AtEnd();
  // Returns the next character that is not a space, or '\0' at the end.
  char Peek();
  // Consumes `c` if it is next.
  bool TryConsume(char c);
  // Consumes `c`, or returns an error that names the expected text.
  absl::Status Consume(char c);
  // Consumes a word, [A-Za-z_][A-Za-z0-9_]*. An error says that `what` was expected.
  absl::StatusOr<std::string> Word(absl::string_view what);
  // Consumes a finite decimal number, with optional sign and exponent.
  absl::StatusOr<double> Number();
  // Returns INVALID_ARGUMENT: "column 5: expected WHAT, got 'x'".
  absl::Status Expected(absl::string_view what);

 private:
  void SkipSpace();

  absl::string_view text_;
  size_t position_ = 0;
};

// Returns INVALID_ARGUMENT with reason EXPRESSION_INVALID. The metadata name the column. The field
// is the name of the parameter at fault; an error of syntax has none, and its message names the
// column.
absl::Status ExpressionError(int column, absl::string_view message,
                             absl::string_view parameter = "");

// Refuses texts over kMaxExpressionBytes.
absl::Status CheckExpressionLength(absl::string_view text);

// Returns the shortest decimal form that reads back as the same float64.
std::string NumberToText(double value);

struct CallArgument {
  std::string name;
  int column = 0;        // of the name
  int value_column = 0;  // of the value
  // Exactly one kind of value is set. A list has `list_rows` rows of equal length, at least 1. A
  // range is number:range_end, and `is_number` is false for it. A call has a name and arguments.
  std::string word;
  double number = 0;
  double range_end = 0;
  std::vector<double> list;
  bool is_number = false;
  bool is_range = false;
  int64_t list_rows = 0;
  std::string call;
  std::vector<CallArgument> arguments;

  bool is_call() const { return !call.empty(); }
  // Returns the value as error messages show it.
  std::string ValueText() const;
};

// Parses a value without a name, so the result's `name` is empty.
absl::StatusOr<CallArgument> ParseValue(ExpressionScanner& scanner);

// A parsed call. Call OnlyHas before Take, because the error "no parameter 'gama'"
// helps users more than "gamma is missing".
class ParsedCall {
 public:
  // Parses a name and its arguments. `what` names the expected call in errors.
  static absl::StatusOr<ParsedCall> Parse(ExpressionScanner& scanner, absl::string_view what);
  // Parses the arguments of a call whose name was already read, at `column`. A name alone is a call
  // without arguments.
  static absl::StatusOr<ParsedCall> ParseArguments(ExpressionScanner& scanner, std::string name,
                                                   int column);

  // REQUIRES: value.is_call().
  static ParsedCall Of(const CallArgument& value);

  const std::string& name() const { return name_; }
  int column() const { return column_; }
  // Rejects the first argument whose name is not in `known`. The error lists `known`.
  absl::Status OnlyHas(absl::Span<const absl::string_view> known) const;
  // Returns the argument, or nullptr if it is absent.
  const CallArgument* Take(absl::string_view name) const;

 private:
  std::string name_;
  int column_ = 0;
  std::vector<CallArgument> arguments_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_CALL_SYNTAX_H_
