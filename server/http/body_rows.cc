#include "server/http/body_rows.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/digest/named_columns.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"
#include "core/status/words.h"
#include "proto/rows/byte_source.h"
#include "proto/rows/csv_tokenizer.h"
#include "proto/rows/number_text.h"
#include "server/http/http_status.h"

namespace phimap {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
// The limit of a block of rows, as examples.proto states it.
constexpr int64_t kMaxBodyRows = 65'536;

absl::Status WrongRows(absl::string_view message) { return MalformedHttp("rows", message); }

absl::Status TooManyRows() {
  return WrongRows(
      absl::StrCat("expected at most ", kMaxBodyRows, " rows in one request, got more"));
}

absl::StatusOr<v1::TrainingPart> PartOf(absl::string_view name) {
  if (name.empty()) return v1::TRAINING_PART_UNSPECIFIED;
  if (name == "train") return v1::TRAINING_PART_TRAIN;
  if (name == "validate") return v1::TRAINING_PART_VALIDATE;
  if (name == "calibrate-link") return v1::TRAINING_PART_CALIBRATE_LINK;
  if (name == "calibrate-sets") return v1::TRAINING_PART_CALIBRATE_SETS;
  if (name == "test") return v1::TRAINING_PART_TEST;
  return absl::InvalidArgumentError(absl::StrCat(
      "expected train, validate, calibrate-link, calibrate-sets, test or nothing, got ",
      Quoted(name)));
}

}  // namespace

// ---- Where to cut

std::optional<size_t> BodyCutter::Next(absl::string_view arrived, bool ended) {
  if (arrived.empty()) return std::nullopt;
  if (type_ == FileType::kCsv) return NextLines(arrived, ended);
  if (!header_cut_) return NpyHeaderSize(arrived, ended);
  if (row_bytes_ == 0) return arrived.size();
  const size_t rows = std::min(arrived.size(), std::max(kPieceBytes, row_bytes_)) / row_bytes_;
  if (rows > 0) return rows * row_bytes_;
  return ended ? std::optional<size_t>(arrived.size()) : std::nullopt;
}

std::optional<size_t> BodyCutter::NpyHeaderSize(absl::string_view arrived, bool ended) {
  if (arrived.size() < kNpyStartSizeBytes && !ended) return std::nullopt;
  const absl::StatusOr<NpyStart> start = ReadNpyStart(arrived.substr(0, kNpyStartSizeBytes));
  const size_t size = start.ok() ? start->start + start->dictionary : arrived.size();
  if (arrived.size() < size && !ended) return std::nullopt;
  header_cut_ = true;
  if (start.ok() && arrived.size() >= size) {
    const absl::StatusOr<NpyHeader> header =
        ParseNpyDictionary(arrived.substr(start->start, start->dictionary));
    if (header.ok()) {
      row_bytes_ = static_cast<size_t>(header->columns * StoredSizeBytes(header->type));
    }
  }
  return std::min(size, arrived.size());
}

// A line end inside quotes belongs to a cell. Pieces begin at rows, so each begins outside quotes.
std::optional<size_t> BodyCutter::NextLines(absl::string_view arrived, bool ended) {
  size_t end = 0;
  for (; scanned_ < arrived.size(); ++scanned_) {
    if (arrived[scanned_] == '"') quoted_ = !quoted_;
    if (arrived[scanned_] != '\n' || quoted_) continue;
    if (end > 0 && scanned_ >= kPieceBytes) break;
    end = scanned_ + 1;
    if (!header_cut_) break;
  }
  if (end == 0 && !ended && arrived.size() <= kMaxBodyRowBytes) return std::nullopt;
  scanned_ = 0;
  quoted_ = false;
  header_cut_ = true;
  return end > 0 ? end : arrived.size();
}

// ---- What is in a piece

// Values of .npy are copied once, and a byte becomes a float32. A cell of one digit and a delimiter
// becomes a number of 8 bytes, beside the tokenizer's two copies of the text. A row of such a cell,
// a label and a group has two texts of 72 bytes each, with what allocates them.
int64_t BodyRows::Cost(FileType type, const ColumnRoles& roles, int64_t bytes) {
  const bool texts = !roles.label.empty() || !roles.groups.empty();
  return 4096 + (type == FileType::kNpy ? 6 : texts ? 32 : 8) * bytes;
}

absl::Status BodyRows::FindColumn(const std::string& name, const char* role, int& place) const {
  place = -1;
  if (name.empty()) return absl::OkStatus();
  const auto found = absl::c_find(header_, name);
  if (found != header_.end()) {
    place = static_cast<int>(found - header_.begin());
    return absl::OkStatus();
  }
  return MalformedHttp(role, absl::StrCat("expected one of the columns ", ShownColumnNames(header_),
                                          ", got ", Quoted(name)));
}

absl::Status BodyRows::ReadHeader(absl::string_view piece) {
  if (type_ == FileType::kCsv) return ReadCsvHeader(piece);
  if (!roles_.label.empty() || !roles_.weights.empty() || !roles_.groups.empty() ||
      !roles_.parts.empty() || !roles_.columns.empty() || !roles_.exclude.empty()) {
    return MalformedHttp("query",
                         "a .npy array has no names of columns; send labels and what else "
                         "is known of rows as columns of CSV");
  }
  const auto wrong = [](absl::string_view message) {
    return WrongRows(absl::StrCat("the body: ", message));
  };
  const absl::StatusOr<NpyStart> start = ReadNpyStart(piece.substr(0, kNpyStartSizeBytes));
  if (!start.ok()) return wrong(start.status().message());
  if (piece.size() < start->start + start->dictionary) return wrong("its header is cut off");
  const absl::StatusOr<NpyHeader> header =
      ParseNpyDictionary(piece.substr(start->start, start->dictionary));
  if (!header.ok()) return wrong(header.status().message());
  if (header->by_column) {
    return wrong(
        "its values are stored column by column (Fortran order), which can only be read when all "
        "have arrived; convert with numpy.ascontiguousarray(array)");
  }
  npy_ = *header;
  return absl::OkStatus();
}

absl::Status BodyRows::ReadCsvHeader(absl::string_view piece) {
  MemorySource source(piece, "the body");
  CsvTokenizer tokenizer(source, roles_.delimiter, piece.size() + 1);
  CsvRecord record;
  const absl::StatusOr<bool> any = tokenizer.Next(record);
  if (!any.ok()) return WrongRows(any.status().message());
  if (!*any || record.blank()) {
    return WrongRows("expected a header with the names of the columns in line 1, got nothing");
  }
  bool only_numbers = true;
  for (int i = 0; i < record.size(); ++i) {
    if (!IsUtf8(record.cell(i))) {
      return WrongRows(absl::StrCat("line 1: the name of column ", i + 1, " is not UTF-8"));
    }
    double number = 0;
    only_numbers &= ParseNumber(record.cell(i), number) == NumberError::kNone;
    header_.emplace_back(record.cell(i));
  }
  if (only_numbers) {
    return WrongRows(
        "expected a header with the names of the columns in line 1, got numbers, which are "
        "probably the first row");
  }
  lines_ = absl::c_count(piece, '\n');
  PHIMAP_RETURN_IF_ERROR(FindColumn(roles_.label, "label", label_));
  PHIMAP_RETURN_IF_ERROR(FindColumn(roles_.weights, "weights", weights_));
  PHIMAP_RETURN_IF_ERROR(FindColumn(roles_.groups, "groups", groups_));
  PHIMAP_RETURN_IF_ERROR(FindColumn(roles_.parts, "parts", parts_));
  std::vector<bool> taken(header_.size(), false);
  for (const int place : {label_, weights_, groups_, parts_}) {
    if (place >= 0) taken[static_cast<size_t>(place)] = true;
  }
  for (const std::string& name : roles_.exclude) {
    int place = -1;
    PHIMAP_RETURN_IF_ERROR(FindColumn(name, "exclude", place));
    if (place >= 0) taken[static_cast<size_t>(place)] = true;
  }
  for (const std::string& name : roles_.columns) {
    int place = -1;
    PHIMAP_RETURN_IF_ERROR(FindColumn(name, "columns", place));
    if (place >= 0 && taken[static_cast<size_t>(place)]) {
      return MalformedHttp("columns", absl::StrCat("the column ", Quoted(name),
                                                   " is listed twice, or has another role"));
    }
    if (place < 0) continue;
    taken[static_cast<size_t>(place)] = true;
    inputs_.push_back(place);
  }
  for (size_t i = 0; roles_.columns.empty() && i < header_.size(); ++i) {
    if (!taken[i]) inputs_.push_back(static_cast<int>(i));
  }
  if (inputs_.empty()) return MalformedHttp("columns", "expected at least one column of inputs");
  for (const int place : inputs_) names_.push_back(header_[static_cast<size_t>(place)]);
  return absl::OkStatus();
}

std::string BodyRows::HintFor(int column, absl::string_view cell) const {
  for (const auto& [other, name] : {std::pair{';', ";"}, std::pair{'\t', "tab"}}) {
    if (header_.size() == 1 && header_[0].find(other) != std::string::npos) {
      return absl::StrCat("; if cells end with another character than '",
                          std::string(1, roles_.delimiter), "', add delimiter=", name,
                          " to the query");
    }
  }
  if (absl::StripAsciiWhitespace(cell).empty()) return "";
  return absl::StrCat(
      "; if this column is no input, add label=", header_[static_cast<size_t>(column)],
      " or exclude=", header_[static_cast<size_t>(column)], " to the query");
}

absl::Status BodyRows::Read(absl::string_view piece, v1::TrainingExamples& rows) {
  if (piece.size() > kMaxBodyRowBytes) {
    const std::string line = type_ == FileType::kCsv ? absl::StrCat("line ", lines_ + 1, ": ") : "";
    return WrongRows(absl::StrCat(line, "a row is longer than ", kMaxBodyRowBytes, " bytes",
                                  line.empty() ? "" : "; is a quote open?"));
  }
  return ReadAll(piece, rows);
}

absl::Status BodyRows::ReadAll(absl::string_view body, v1::TrainingExamples& rows) {
  return type_ == FileType::kCsv ? ReadCsv(body, rows) : ReadNpy(body, rows);
}

absl::Status BodyRows::ReadCsv(absl::string_view piece, v1::TrainingExamples& rows) {
  MemorySource source(piece, "the body");
  CsvTokenizer tokenizer(source, roles_.delimiter, piece.size() + 1);
  CsvRecord record;
  std::string values;
  values.reserve(piece.size() * sizeof(double) / 2);
  int32_t count = 0;
  const auto wrong = [&](absl::string_view message) {
    return WrongRows(absl::StrCat("line ", lines_ + record.line(), ": ", message));
  };
  const auto wrong_cell = [&](int column, absl::string_view message) {
    return wrong(absl::StrCat("column ", column + 1, " (",
                              Quoted(header_[static_cast<size_t>(column)]), "): ", message));
  };
  while (true) {
    const absl::StatusOr<bool> any = tokenizer.Next(record);
    if (!any.ok()) return wrong(any.status().message());
    if (!*any) break;
    if (record.blank()) {
      blank_ = true;
      continue;
    }
    if (blank_) return wrong("a row follows a blank line");
    if (count == kMaxBodyRows) return TooManyRows();
    if (record.size() != static_cast<int>(header_.size())) {
      return wrong(absl::StrCat("expected ", CountOf(static_cast<int64_t>(header_.size()), "cell"),
                                " as in the header, got ", record.size()));
    }
    for (const int column : inputs_) {
      double number = 0;
      const NumberError error = ParseNumber(record.cell(column), number);
      if (error != NumberError::kNone) {
        return wrong_cell(column, absl::StrCat(ExplainNumber(error, record.cell(column)),
                                               HintFor(column, record.cell(column))));
      }
      values.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    // A text of a message must be.
    for (const int column : {label_, groups_}) {
      if (column >= 0 && !IsUtf8(record.cell(column))) {
        return wrong_cell(column, "expected UTF-8, got other bytes");
      }
    }
    if (label_ >= 0) rows.add_labels(std::string(record.cell(label_)));
    if (groups_ >= 0) rows.add_groups(std::string(record.cell(groups_)));
    if (weights_ >= 0) {
      double weight = 0;
      const NumberError error = ParseNumber(record.cell(weights_), weight);
      if (error != NumberError::kNone) {
        return wrong_cell(weights_, ExplainNumber(error, record.cell(weights_)));
      }
      rows.add_weights(weight);
    }
    if (parts_ >= 0) {
      const absl::StatusOr<v1::TrainingPart> part = PartOf(record.cell(parts_));
      if (!part.ok()) return wrong_cell(parts_, part.status().message());
      rows.add_parts(*part);
    }
    ++count;
  }
  lines_ += absl::c_count(piece, '\n');
  rows_ += count;
  if (count == 0) return absl::OkStatus();
  v1::DenseRows& dense = *rows.mutable_examples()->mutable_dense();
  dense.set_rows(count);
  dense.set_columns(static_cast<int32_t>(inputs_.size()));
  dense.set_float64_le(std::move(values));
  return absl::OkStatus();
}

absl::Status BodyRows::ReadNpy(absl::string_view piece, v1::TrainingExamples& rows) {
  const auto row_bytes = static_cast<size_t>(npy_.columns * StoredSizeBytes(npy_.type));
  const size_t count = piece.size() / row_bytes;
  if (piece.size() % row_bytes != 0 || rows_ + static_cast<int64_t>(count) > npy_.rows) {
    return WrongRows(absl::StrCat("the body: its header says ", CountOf(npy_.rows, "row"),
                                  piece.size() % row_bytes != 0 ? ", but it ends within one"
                                                                : ", but more bytes follow them"));
  }
  if (count > kMaxBodyRows) return TooManyRows();
  std::string values;
  const std::optional<int64_t> inexact = CastExactly(npy_.type, std::string(piece), values);
  if (inexact.has_value()) {
    return WrongRows(
        absl::StrCat("the integer ", IntegerText(npy_.type, std::string(piece), *inexact),
                     " at array[", rows_ + *inexact / npy_.columns, ", ", *inexact % npy_.columns,
                     "] cannot be represented exactly in float64; convert with "
                     "array.astype('<f8')"));
  }
  rows_ += static_cast<int64_t>(count);
  v1::DenseRows& dense = *rows.mutable_examples()->mutable_dense();
  dense.set_rows(static_cast<int32_t>(count));
  dense.set_columns(npy_.columns);
  (SentAsFloat32(npy_.type) ? *dense.mutable_float32_le() : *dense.mutable_float64_le()) =
      std::move(values);
  return absl::OkStatus();
}

absl::Status BodyRows::CheckEnd() const {
  if (type_ == FileType::kCsv || rows_ == npy_.rows) return absl::OkStatus();
  return WrongRows(absl::StrCat("the body: its header says ", CountOf(npy_.rows, "row"),
                                ", but it ends after ", rows_));
}

}  // namespace phimap
