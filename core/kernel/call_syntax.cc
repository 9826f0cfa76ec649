#include "core/kernel/call_syntax.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {

void ExpressionScanner::SkipSpace() {
  while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t')) {
    ++position_;
  }
}

int ExpressionScanner::column() {
  SkipSpace();
  return static_cast<int>(position_) + 1;
}

bool ExpressionScanner::AtEnd() {
  SkipSpace();
  return position_ == text_.size();
}

char ExpressionScanner::Peek() { return AtEnd() ? '\0' : text_[position_]; }

bool ExpressionScanner::TryConsume(char c) {
  if (AtEnd() || text_[position_] != c) return false;
  ++position_;
  return true;
}

absl::Status ExpressionScanner::Consume(char c) {
  if (TryConsume(c)) return absl::OkStatus();
  return Expected(absl::StrCat("'", std::string(1, c), "'"));
}

absl::StatusOr<std::string> ExpressionScanner::Word(absl::string_view what) {
  const char first = Peek();
  if (!absl::ascii_isalpha(first) && first != '_') return Expected(what);
  const size_t start = position_;
  while (position_ < text_.size() &&
         (absl::ascii_isalnum(text_[position_]) || text_[position_] == '_')) {
    ++position_;
  }
  return std::string(text_.substr(start, position_ - start));
}

absl::StatusOr<double> ExpressionScanner::Number() {
  const int start_column = column();
  const char* begin = text_.data() + position_;
  const char* end = text_.data() + text_.size();
  const char* digits = begin;
  if (digits != end && (*digits == '+' || *digits == '-')) ++digits;
  // from_chars would accept "inf" and "nan", so require a digit or a point.
  if (digits == end || !(absl::ascii_isdigit(*digits) || *digits == '.')) {
    return Expected("a number");
  }
  // Hexadecimal numbers are not accepted. Of "0x10", only the 0 is read as a number.
  if (end - digits > 1 && digits[0] == '0' && absl::ascii_tolower(digits[1]) == 'x') {
    end = digits + 1;
  }
  double value = 0;
  const absl::from_chars_result result =
      absl::from_chars(*begin == '+' ? digits : begin, end, value);
  if (result.ptr == begin || result.ec == std::errc::invalid_argument) return Expected("a number");
  if (result.ec == std::errc::result_out_of_range || !std::isfinite(value)) {
    return ExpressionError(start_column, "number out of the range of float64");
  }
  position_ = static_cast<size_t>(result.ptr - text_.data());
  return value;
}

absl::Status ExpressionScanner::Expected(absl::string_view what) {
  const char next = Peek();
  std::string got = next == '\0' && AtEnd() ? "the end"
                    : absl::ascii_isprint(next)
                        ? absl::StrCat("'", std::string(1, next), "'")
                        : absl::StrCat("byte ", static_cast<int>(static_cast<unsigned char>(next)));
  return ExpressionError(column(), absl::StrCat("expected ", what, ", got ", got));
}

absl::Status ExpressionError(int column, absl::string_view message, absl::string_view parameter) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kExpressionInvalid, parameter,
                   parameter.empty() ? absl::StrCat("column ", column, ": ", message) : message,
                   {{"column", absl::StrCat(column)}});
}

absl::Status CheckExpressionLength(absl::string_view text) {
  if (static_cast<int64_t>(text.size()) <= kMaxExpressionBytes) return absl::OkStatus();
  return ExpressionError(static_cast<int>(kMaxExpressionBytes) + 1,
                         absl::StrCat("text of ", text.size(), " bytes; at most ",
                                      kMaxExpressionBytes, " are allowed"));
}

std::string NumberToText(double value) {
  std::array<char, 32> buffer;
  const std::to_chars_result result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

namespace {

// Parses `[` number { `,` number } { `;` number { `,` number } } `]`.
absl::Status ParseList(ExpressionScanner& scanner, CallArgument& argument) {
  PHIMAP_RETURN_IF_ERROR(scanner.Consume('['));
  size_t columns = 0;
  do {
    const int row_column = scanner.column();
    const size_t begin = argument.list.size();
    do {
      PHIMAP_ASSIGN_OR_RETURN(const double number, scanner.Number());
      argument.list.push_back(number);
    } while (scanner.TryConsume(','));
    const size_t length = argument.list.size() - begin;
    if (++argument.list_rows == 1) columns = length;
    if (length != columns) {
      return ExpressionError(
          row_column, absl::StrCat("row ", argument.list_rows, " has ", CountOf(length, "number"),
                                   ", expected ", columns, " as in the first row"));
    }
  } while (scanner.TryConsume(';'));
  return scanner.Peek() == ']' ? scanner.Consume(']') : scanner.Expected("',', ';' or ']'");
}

absl::StatusOr<CallArgument> ParseValueOf(ExpressionScanner& scanner, bool may_call);

absl::StatusOr<CallArgument> ParseArgument(ExpressionScanner& scanner, bool may_call) {
  const int column = scanner.column();
  PHIMAP_ASSIGN_OR_RETURN(std::string name, scanner.Word("the name of a parameter"));
  PHIMAP_RETURN_IF_ERROR(scanner.Consume('='));
  PHIMAP_ASSIGN_OR_RETURN(CallArgument argument, ParseValueOf(scanner, may_call));
  argument.name = std::move(name);
  argument.column = column;
  return argument;
}

// Parses `(` [ argument { `,` argument } ] `)`. Rejects a name that occurs twice.
absl::StatusOr<std::vector<CallArgument>> ParseArgumentList(ExpressionScanner& scanner,
                                                            bool may_call) {
  std::vector<CallArgument> arguments;
  PHIMAP_RETURN_IF_ERROR(scanner.Consume('('));
  while (!scanner.TryConsume(')')) {
    if (!arguments.empty() && !scanner.TryConsume(',')) return scanner.Expected("',' or ')'");
    PHIMAP_ASSIGN_OR_RETURN(CallArgument argument, ParseArgument(scanner, may_call));
    for (const CallArgument& other : arguments) {
      if (other.name != argument.name) continue;
      return ExpressionError(argument.column,
                             absl::StrCat("parameter '", argument.name, "' is given twice"),
                             argument.name);
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

// Allows one level of nested calls, so that no text can make the recursion deep.
absl::StatusOr<CallArgument> ParseValueOf(ExpressionScanner& scanner, bool may_call) {
  CallArgument argument;
  argument.value_column = scanner.column();
  const char next = scanner.Peek();
  if (absl::ascii_isalpha(next)) {
    PHIMAP_ASSIGN_OR_RETURN(argument.word, scanner.Word("a value"));
    if (may_call && scanner.Peek() == '(') {
      PHIMAP_ASSIGN_OR_RETURN(argument.arguments, ParseArgumentList(scanner, false));
      argument.call.swap(argument.word);
    }
    return argument;
  }
  if (next == '[') {
    PHIMAP_RETURN_IF_ERROR(ParseList(scanner, argument));
    return argument;
  }
  PHIMAP_ASSIGN_OR_RETURN(argument.number, scanner.Number());
  argument.is_range = scanner.TryConsume(':');
  argument.is_number = !argument.is_range;
  if (argument.is_range) {
    PHIMAP_ASSIGN_OR_RETURN(argument.range_end, scanner.Number());
  }
  return argument;
}

}  // namespace

absl::StatusOr<CallArgument> ParseValue(ExpressionScanner& scanner) {
  return ParseValueOf(scanner, true);
}

std::string CallArgument::ValueText() const {
  if (is_number) return NumberToText(number);
  if (is_range) return absl::StrCat(NumberToText(number), ":", NumberToText(range_end));
  if (list_rows > 0) return "a list";
  if (is_call()) return absl::StrCat("the call ", call, "(…)");
  return absl::StrCat("'", word, "'");
}

absl::StatusOr<ParsedCall> ParsedCall::Parse(ExpressionScanner& scanner, absl::string_view what) {
  const int column = scanner.column();
  PHIMAP_ASSIGN_OR_RETURN(std::string name, scanner.Word(what));
  return ParseArguments(scanner, std::move(name), column);
}

absl::StatusOr<ParsedCall> ParsedCall::ParseArguments(ExpressionScanner& scanner, std::string name,
                                                      int column) {
  ParsedCall call;
  call.column_ = column;
  call.name_ = std::move(name);
  if (scanner.Peek() != '(') return call;
  PHIMAP_ASSIGN_OR_RETURN(call.arguments_, ParseArgumentList(scanner, true));
  return call;
}

ParsedCall ParsedCall::Of(const CallArgument& value) {
  PHIMAP_CHECK(value.is_call());
  ParsedCall call;
  call.column_ = value.value_column;
  call.name_ = value.call;
  call.arguments_ = value.arguments;
  return call;
}

absl::Status ParsedCall::OnlyHas(absl::Span<const absl::string_view> known) const {
  for (const CallArgument& argument : arguments_) {
    if (std::find(known.begin(), known.end(), argument.name) != known.end()) continue;
    return ExpressionError(
        argument.column,
        absl::StrCat(name_, " has no parameter '", argument.name, "'; it has ",
                     known.empty() ? "no parameters" : absl::StrJoin(known, ", ")),
        argument.name);
  }
  return absl::OkStatus();
}

const CallArgument* ParsedCall::Take(absl::string_view name) const {
  for (const CallArgument& argument : arguments_) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

}  // namespace phimap
