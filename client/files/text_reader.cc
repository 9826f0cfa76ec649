#include "client/files/text_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"
#include "core/status/words.h"

namespace phimap::cli {

absl::StatusOr<client::ExampleBlock> TextLinesReader::Next(const client::BlockLimits& limits) {
  client::StringBlock block;
  int64_t bytes = 0;
  std::string line;
  while (static_cast<int32_t>(block.values.size()) < limits.rows && bytes < limits.bytes) {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, lines_.Next(line));
    if (!any) break;
    if (!IsUtf8(line)) return lines_.Error("expected text in UTF-8, got bytes that are not UTF-8");
    bytes += static_cast<int64_t>(line.size());
    block.values.push_back(std::move(line));
  }
  return client::ExampleBlock(std::move(block));
}

absl::StatusOr<std::unique_ptr<TextColumnReader>> TextColumnReader::Open(
    std::unique_ptr<InputFile> file, const std::string& text, const std::string& label,
    char delimiter) {
  std::unique_ptr<TextColumnReader> reader(new TextColumnReader(std::move(file), delimiter));
  PHIMAP_RETURN_IF_ERROR(reader->ReadHeader());
  PHIMAP_ASSIGN_OR_RETURN(reader->text_column_, reader->ColumnNamed(text, "--text"));
  if (label.empty()) return reader;
  PHIMAP_ASSIGN_OR_RETURN(reader->label_column_, reader->ColumnNamed(label, "--label"));
  if (reader->label_column_ == reader->text_column_) {
    return absl::InvalidArgumentError("--label and --text name the same column");
  }
  return reader;
}

absl::Status TextColumnReader::ReadHeader() {
  PHIMAP_ASSIGN_OR_RETURN(const bool any, NextRecord());
  if (!any) return LineError("expected a header with the names of the columns, got no text");
  header_.clear();
  for (int i = 0; i < record_.size(); ++i) {
    header_.emplace_back(absl::StripAsciiWhitespace(record_.cell(i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> TextColumnReader::ColumnNamed(const std::string& name,
                                                  const char* option) const {
  const auto named = std::count(header_.begin(), header_.end(), name);
  if (named == 1) {
    return static_cast<int>(std::find(header_.begin(), header_.end(), name) - header_.begin());
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": ", file_->name(), " has ", named == 0 ? "no" : "more than one",
                   " column '", name, "'; its columns are ", absl::StrJoin(header_, ", ")));
}

absl::StatusOr<bool> TextColumnReader::NextRecord() {
  do {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, tokenizer_.Next(record_));
    if (!any) return false;
  } while (record_.blank());
  return true;
}

absl::Status TextColumnReader::LineError(const std::string& message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_->name(), ", line ", std::max<int64_t>(1, record_.line()), ": ", message));
}

absl::StatusOr<client::ExampleBlock> TextColumnReader::Next(const client::BlockLimits& limits) {
  client::StringBlock block;
  int64_t bytes = 0;
  while (static_cast<int32_t>(block.values.size()) < limits.rows && bytes < limits.bytes) {
    PHIMAP_ASSIGN_OR_RETURN(const bool any, NextRecord());
    if (!any) break;
    if (record_.size() != static_cast<int>(header_.size())) {
      return LineError(absl::StrCat("expected ", CountOf(header_.size(), "cell"),
                                    " as in the header, got ", record_.size(),
                                    "; put a text with commas in quotes"));
    }
    const absl::string_view text = record_.cell(text_column_);
    if (!IsUtf8(text)) {
      return LineError(absl::StrCat("column ", text_column_ + 1, " (", header_[text_column_],
                                    "): expected text in UTF-8, got bytes that are not UTF-8"));
    }
    bytes += static_cast<int64_t>(text.size());
    block.values.emplace_back(text);
    if (label_column_ >= 0) labels_.emplace_back(record_.cell(label_column_));
  }
  return client::ExampleBlock(std::move(block));
}

absl::Status TextColumnReader::Rewind() {
  PHIMAP_RETURN_IF_ERROR(file_->Rewind());
  tokenizer_.Restart();
  labels_.clear();
  return ReadHeader();
}

std::vector<std::string> TextColumnReader::TakeLabels() { return std::exchange(labels_, {}); }

}  // namespace phimap::cli
