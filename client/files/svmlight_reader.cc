#include "client/files/svmlight_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/files/line_reader.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"
#include "core/status/words.h"
#include "proto/rows/number_text.h"

namespace phimap::cli {
namespace {

constexpr int64_t kMaxSvmlightColumns = 65'536;  // The API's limit.
constexpr absl::string_view kBlanks = " \t\v\f\r";

// Cuts the next word off `rest` and returns it; empty at the end.
absl::string_view NextToken(absl::string_view& rest) {
  const size_t begin = rest.find_first_not_of(kBlanks);
  if (begin == absl::string_view::npos) {
    rest = {};
    return {};
  }
  rest.remove_prefix(begin);
  const absl::string_view token = rest.substr(0, rest.find_first_of(kBlanks));
  rest.remove_prefix(token.size());
  return token;
}

std::string LabelText(absl::string_view token) {
  double number = 0;
  if (ParseNumber(token, number) != NumberError::kNone) return std::string(token);
  // Returns "0" for -0, the shortest form of a number if six digits suffice, and the text of the
  // file otherwise.
  if (number == 0) return "0";
  const std::string six = absl::StrCat(number);
  double back = 0;
  if (absl::SimpleAtod(six, &back) && back == number) return six;
  return std::string(token.substr(token[0] == '+' ? 1 : 0));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SvmlightReader>> SvmlightReader::Open(
    std::unique_ptr<InputFile> file, const SvmlightOptions& options, client::CancelToken& cancel) {
  std::unique_ptr<SvmlightReader> reader(new SvmlightReader(std::move(file), options));
  if (options.columns == 0) PHIMAP_RETURN_IF_ERROR(reader->CountColumns(cancel));
  return reader;
}

SvmlightReader::SvmlightReader(std::unique_ptr<InputFile> file, const SvmlightOptions& options)
    : file_(std::move(file)), options_(options), lines_(*file_) {}

absl::Status SvmlightReader::CountColumns(client::CancelToken& cancel) {
  if (!file_->CanRewind()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_->name(), " can be read only once, and the number of columns of an svmlight file is ",
        "known only at its end; use --columns"));
  }
  const auto registration = cancel.OnCancel([this] { Interrupt(); });
  PHIMAP_ASSIGN_OR_RETURN(const int64_t largest, LargestColumn());
  if (largest < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->name(),
                     ": no row has an entry INDEX:VALUE; if that is right, state the number of "
                     "columns with --columns"));
  }
  options_.columns = static_cast<int32_t>(largest + 1);
  return Rewind();
}

absl::StatusOr<int64_t> SvmlightReader::LargestColumn() {
  int64_t largest = -1;
  options_.columns = static_cast<int32_t>(kMaxSvmlightColumns);
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, NextLine());
    if (!any) return largest;
    Entries entries;
    PHIMAP_RETURN_IF_ERROR(TakeRow(entries));
    if (!entries.columns.empty()) largest = std::max<int64_t>(largest, entries.columns.back());
  }
}

absl::Status SvmlightReader::Rewind() {
  labels_.clear();
  return lines_.Rewind();
}

std::vector<std::string> SvmlightReader::TakeLabels() { return std::exchange(labels_, {}); }

absl::StatusOr<client::ExampleBlock> SvmlightReader::Next(const client::BlockLimits& limits) {
  constexpr int64_t kRowBytes = sizeof(int64_t);
  constexpr int64_t kEntryBytes = sizeof(int32_t) + sizeof(double);
  Entries entries;
  int64_t bytes = 0;
  for (int32_t row = 0; row < limits.rows && bytes < limits.bytes; ++row) {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, NextLine());
    if (!any) break;
    PHIMAP_RETURN_IF_ERROR(TakeRow(entries));
    bytes = kRowBytes * (row + 1) + kEntryBytes * static_cast<int64_t>(entries.values.size());
  }
  if (entries.offsets.size() == 1) return client::ExampleBlock();
  return client::ExampleBlock(client::MakeSparseBlock(entries.offsets, entries.columns,
                                                      absl::Span<const double>(entries.values),
                                                      options_.columns));
}

absl::StatusOr<bool> SvmlightReader::NextLine() {
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, lines_.Next(line_));
    if (!any) return false;
    if (const size_t comment = line_.find('#'); comment != std::string::npos) line_.resize(comment);
    absl::StripAsciiWhitespace(&line_);
    if (!line_.empty()) return true;
  }
}

absl::Status SvmlightReader::TakeRow(Entries& entries) {
  absl::string_view rest = line_;
  PHIMAP_RETURN_IF_ERROR(TakeLabel(rest));
  while (true) {
    const absl::string_view token = NextToken(rest);
    if (token.empty()) break;
    PHIMAP_RETURN_IF_ERROR(TakeEntry(token, entries));
  }
  entries.offsets.push_back(static_cast<int64_t>(entries.values.size()));
  return absl::OkStatus();
}

absl::Status SvmlightReader::TakeLabel(absl::string_view& rest) {
  absl::string_view behind = rest;
  const absl::string_view token = NextToken(behind);
  if (token.find(':') != absl::string_view::npos) {
    if (!keep_labels_) return absl::OkStatus();
    return lines_.Error(
        absl::StrCat("expected a label before the entries, got ", QuotedCell(token)));
  }
  rest = behind;
  if (!keep_labels_) return absl::OkStatus();
  if (!IsUtf8(token)) return lines_.Error("expected text in UTF-8 for a label");
  labels_.push_back(LabelText(token));
  return absl::OkStatus();
}

absl::Status SvmlightReader::TakeEntry(absl::string_view token, Entries& entries) {
  const size_t colon = token.find(':');
  if (colon == absl::string_view::npos) {
    return lines_.Error(absl::StrCat("expected INDEX:VALUE, got ", QuotedCell(token)));
  }
  if (token.substr(0, colon) == "qid") return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const int32_t column, ColumnOf(token.substr(0, colon)));
  const bool first = static_cast<int64_t>(entries.columns.size()) == entries.offsets.back();
  if (!first && column <= entries.columns.back()) {
    const int64_t base = options_.zero_based ? 0 : 1;
    return lines_.Error(absl::StrCat("indices must increase within a row; got ", column + base,
                                     " after ", entries.columns.back() + base));
  }
  double value = 0;
  const NumberError error = ParseNumber(token.substr(colon + 1), value);
  if (error != NumberError::kNone) {
    return lines_.Error(absl::StrCat("in ", QuotedCell(token), ": ",
                                     ExplainNumber(error, token.substr(colon + 1))));
  }
  entries.columns.push_back(column);
  entries.values.push_back(value);
  return absl::OkStatus();
}

absl::StatusOr<int32_t> SvmlightReader::ColumnOf(absl::string_view index) const {
  int64_t number = 0;
  if (!absl::SimpleAtoi(index, &number)) {
    return lines_.Error(absl::StrCat("expected INDEX:VALUE with a whole number for INDEX, got ",
                                     QuotedCell(index)));
  }
  const int64_t base = options_.zero_based ? 0 : 1;
  const int64_t column = number - base;
  if (column < 0) {
    return lines_.Error(
        absl::StrCat("indices begin with ", base, ", got ", number,
                     number == 0 ? "; if the file's indices begin with 0, use --zero-based" : ""));
  }
  if (column >= options_.columns) {
    return lines_.Error(absl::StrCat("index ", number, " is too large; the largest index of ",
                                     CountOf(options_.columns, "column"), " is ",
                                     options_.columns - 1 + base));
  }
  return static_cast<int32_t>(column);
}

}  // namespace phimap::cli
