#include "client/files/csv_reader.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"
#include "core/status/words.h"
#include "proto/rows/number_text.h"

namespace phimap::cli {
namespace {

constexpr int kMaxCsvColumns = 65'536;  // The API's limit.
bool IsNumber(const std::string& cell) {
  double value;
  return ParseNumber(cell, value) == NumberError::kNone;
}

constexpr absl::string_view kRecipe =
    "docs/coming_from_scikit_learn.md#missing-values-and-categories";

std::string RecipeFor(NumberError error) {
  if (error != NumberError::kEmpty && error != NumberError::kNotFinite) return "";
  return absl::StrCat("; if the value is missing, ", kRecipe, " says how to fill it in");
}

}  // namespace

absl::StatusOr<std::unique_ptr<CsvReader>> CsvReader::Open(
    std::unique_ptr<InputFile> file, ColumnChoice choice, char delimiter,
    std::shared_ptr<PassthroughCells> passthrough) {
  std::unique_ptr<CsvReader> reader(
      new CsvReader(std::move(file), std::move(choice), delimiter, std::move(passthrough)));
  PHIMAP_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

absl::StatusOr<std::unique_ptr<CsvReader>> CsvReader::Open(std::unique_ptr<InputFile> file,
                                                           const std::string& label,
                                                           char delimiter) {
  return Open(std::move(file), ColumnChoice{.label = label}, delimiter);
}

CsvReader::CsvReader(std::unique_ptr<InputFile> file, ColumnChoice choice, char delimiter,
                     std::shared_ptr<PassthroughCells> passthrough)
    : file_(std::move(file)),
      choice_(std::move(choice)),
      passthrough_(std::move(passthrough)),
      tokenizer_(*file_, delimiter) {}

absl::Status CsvReader::ReadHeader() {
  PHIMAP_ASSIGN_OR_RETURN(const bool any, tokenizer_.Next(record_));
  if (!any) return LineError(1, "expected a header with the names of the columns, got no text");
  if (record_.blank()) return LineError(1, "expected a header, got a blank line");
  header_.clear();
  for (int i = 0; i < record_.size(); ++i) {
    header_.emplace_back(absl::StripAsciiWhitespace(record_.cell(i)));
  }
  if (std::all_of(header_.begin(), header_.end(), IsNumber)) {
    return LineError(1,
                     "expected a header with the names of the columns, got only numbers; if "
                     "this is the first row, put a line of names such as x1,x2,x3 above it");
  }
  PHIMAP_RETURN_IF_ERROR(CheckNamesDiffer());
  return Choose();
}

absl::Status CsvReader::CheckNamesDiffer() const {
  absl::flat_hash_map<absl::string_view, size_t> positions;
  for (size_t i = 0; i < header_.size(); ++i) {
    const auto [first, fresh] = positions.emplace(header_[i], i);
    if (fresh) continue;
    return LineError(1,
                     absl::StrCat("columns ", first->second + 1, " and ", i + 1, " are both named ",
                                  QuotedCell(header_[i]), "; give each column its own name"));
  }
  return absl::OkStatus();
}

absl::Status CsvReader::Choose() {
  PHIMAP_ASSIGN_OR_RETURN(chosen_, ChooseColumns(header_, choice_, file_->name()));
  if (columns() == 0) return LineError(1, "no input column is left");
  if (columns() > kMaxCsvColumns) {
    return LineError(1, absl::StrCat("at most ", kMaxCsvColumns, " columns, got ", columns()));
  }
  if (passthrough_ == nullptr) return absl::OkStatus();
  passthrough_->SetNames(NamesAt(chosen_.passthrough));
  return absl::OkStatus();
}

std::vector<std::string> CsvReader::NamesAt(const std::vector<int>& places) const {
  std::vector<std::string> names;
  for (const int place : places) names.push_back(header_[place]);
  return names;
}

std::vector<std::string> CsvReader::column_names() const { return NamesAt(chosen_.inputs); }

std::vector<std::string> CsvReader::left_out() const { return NamesAt(chosen_.left_out); }

std::vector<std::string> CsvReader::TakeLabels() { return std::exchange(labels_, {}); }

client::RowFacts CsvReader::TakeFacts() { return std::exchange(facts_, {}); }

absl::Status CsvReader::Rewind() {
  PHIMAP_RETURN_IF_ERROR(file_->Rewind());
  tokenizer_.Restart();
  labels_.clear();
  facts_ = {};
  return ReadHeader();
}

absl::StatusOr<client::ExampleBlock> CsvReader::Next(const client::BlockLimits& limits) {
  return NextRows(limits.RowsOf(columns() * static_cast<int64_t>(sizeof(double))));
}

absl::StatusOr<client::RowBlock> CsvReader::NextRows(int32_t max_rows) {
  std::vector<double> values;
  for (int32_t row = 0; row < max_rows; ++row) {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, NextRow());
    if (!any) break;
    PHIMAP_RETURN_IF_ERROR(AppendRow(values));
  }
  return client::MakeRowBlock(absl::Span<const double>(values), columns());
}

absl::StatusOr<bool> CsvReader::NextRow() {
  PHIMAP_ASSIGN_OR_RETURN(const bool any, tokenizer_.Next(record_));
  if (!any) return false;
  if (record_.blank()) return SkipBlankEnd();
  if (record_.size() != std::ssize(header_)) {
    return LineError(record_.line(), absl::StrCat("expected ", CountOf(header_.size(), "cell"),
                                                  " as in the header, got ", record_.size()));
  }
  return true;
}

absl::StatusOr<bool> CsvReader::SkipBlankEnd() {
  const int64_t blank_line = record_.line();
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, tokenizer_.Next(record_));
    if (!any) return false;
    if (!record_.blank()) {
      return LineError(blank_line, absl::StrCat("expected ", CountOf(header_.size(), "cell"),
                                                " as in the header, got a blank line"));
    }
  }
}

absl::Status CsvReader::AppendRow(std::vector<double>& values) {
  for (const int i : chosen_.inputs) {
    double value = 0;
    const NumberError error = ParseNumber(record_.cell(i), value);
    if (error != NumberError::kNone) {
      return CellError(i, absl::StrCat(ExplainNumber(error, record_.cell(i)), RecipeFor(error)));
    }
    values.push_back(value);
  }
  if (keep_labels_) {
    if (chosen_.label >= 0) PHIMAP_RETURN_IF_ERROR(KeepLabel());
    PHIMAP_RETURN_IF_ERROR(KeepFacts());
  }
  return passthrough_ == nullptr ? absl::OkStatus() : PassCellsThrough();
}

absl::Status CsvReader::KeepLabel() {
  const absl::string_view cell = record_.cell(chosen_.label);
  if (!IsUtf8(cell)) return CellError(chosen_.label, "expected text in UTF-8 for a label");
  labels_.emplace_back(cell);
  return absl::OkStatus();
}

absl::Status CsvReader::KeepFacts() {
  if (chosen_.weights >= 0) {
    double value = 0;
    const absl::string_view cell = record_.cell(chosen_.weights);
    const NumberError error = ParseNumber(cell, value);
    if (error != NumberError::kNone) {
      return CellError(chosen_.weights, ExplainNumber(error, cell));
    }
    if (!(value > 0)) {
      return CellError(chosen_.weights,
                       absl::StrCat("expected a weight over 0, got ", QuotedCell(cell),
                                    "; leave out rows that shall not count"));
    }
    facts_.weights.push_back(value);
  }
  if (chosen_.groups >= 0) {
    const absl::string_view cell = record_.cell(chosen_.groups);
    if (!IsUtf8(cell)) return CellError(chosen_.groups, "expected text in UTF-8 for a group");
    facts_.groups.emplace_back(cell);
  }
  if (chosen_.parts >= 0) {
    static constexpr absl::string_view kParts[] = {
        "", "train", "validate", "calibrate-link", "calibrate-sets", "test"};
    const absl::string_view cell = absl::StripAsciiWhitespace(record_.cell(chosen_.parts));
    if (std::find(std::begin(kParts), std::end(kParts), cell) == std::end(kParts)) {
      return CellError(chosen_.parts,
                       absl::StrCat("expected train, validate, calibrate-link, calibrate-sets, "
                                    "test or nothing, got ",
                                    QuotedCell(cell)));
    }
    facts_.parts.emplace_back(cell);
  }
  return absl::OkStatus();
}

absl::Status CsvReader::PassCellsThrough() {
  std::vector<std::string> cells;
  for (const int i : chosen_.passthrough) {
    const absl::string_view cell = record_.cell(i);
    // Refuses line ends in a cell. Each line of the output is a row, and a continued transform
    // counts the lines.
    if (cell.find_first_of("\r\n") != absl::string_view::npos) {
      return CellError(i, "expected one line in a cell for --passthrough");
    }
    cells.emplace_back(cell);
  }
  passthrough_->Push(std::move(cells));
  return absl::OkStatus();
}

absl::Status CsvReader::CellError(int column, absl::string_view message) const {
  return LineError(record_.line(), absl::StrCat("column ", column + 1, " (", header_[column],
                                                "): ", message, HintAt(column)));
}

std::string CsvReader::HintAt(int column) const {
  // A wrong delimiter, or a column that is not an input, shows up in line 2, which is the first
  // row.
  if (record_.line() != 2) return "";
  const size_t other = header_.size() == 1 ? header_[0].find_first_of(";\t|,") : std::string::npos;
  if (other != std::string::npos) {
    const std::string delimiter = header_[0][other] == '\t' ? "tab" : header_[0].substr(other, 1);
    return absl::StrCat("; if the cells are separated by ", delimiter, ", use --delimiter='",
                        delimiter, "'");
  }
  if (!choice_.label.empty()) return "";
  return absl::StrCat("; if the column is not an input, use --label=", header_[column],
                      " or --exclude=", header_[column], "; if it has categories, ", kRecipe,
                      " says how to encode them");
}

absl::Status CsvReader::LineError(int64_t line, absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(file_->name(), ", line ", line, ": ", message));
}

}  // namespace phimap::cli
