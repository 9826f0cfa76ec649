#include "core/plan/examples.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"
#include "core/status/words.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

absl::Status BadOffset(const SparseRowsView& rows, int64_t i, int64_t entries) {
  return MakeError(Code::kInvalidArgument, reason::kOffsetsInvalid,
                   absl::StrCat("row_offsets[", i + 1, "]"),
                   absl::StrCat("row offsets must not fall and must lie between 0 and ", entries,
                                ", the number of entries; row ", i, " has the offsets ",
                                rows.offset(i), " and ", rows.offset(i + 1)),
                   {{"row", absl::StrCat(i)},
                    {"actual", absl::StrCat(rows.offset(i + 1))},
                    {"limit", absl::StrCat(entries)}});
}

absl::Status BadColumn(const SparseRowsView& rows, int64_t row, int64_t entry, int64_t last) {
  const int64_t column = rows.column(entry);
  const bool in_range = column >= 0 && column < rows.columns;
  return MakeError(Code::kInvalidArgument, reason::kColumnIndexInvalid,
                   absl::StrCat("column_indices[", entry, "]"),
                   in_range
                       ? absl::StrCat("columns must rise within a row, without repeats; in row ",
                                      row, ", column ", column, " comes after column ", last,
                                      "; sort the row's entries by column, and add up "
                                      "entries of the same column")
                       : absl::StrCat("expected a column in 0..", rows.columns - 1, ", got ",
                                      column, " in row ", row),
                   {{"row", absl::StrCat(row)},
                    {"column", absl::StrCat(column)},
                    {"limit", absl::StrCat(rows.columns - 1)}});
}

absl::Status BadValue(const SparseRowsView& rows, int64_t row, int64_t entry) {
  return MakeError(Code::kInvalidArgument, reason::kValueNotFinite,
                   absl::StrCat("values[", entry, "]"),
                   absl::StrCat("expected a finite number, got ", rows.value(entry), " in row ",
                                row, ", column ", rows.column(entry)),
                   {{"row", absl::StrCat(row)}, {"column", absl::StrCat(rows.column(entry))}});
}

// Checks offsets before the entries that they refer to.
absl::Status CheckSparse(const SparseRowsView& rows) {
  if (rows.rows == 0) return absl::OkStatus();
  const int64_t entries = rows.offset(rows.rows);
  for (int64_t i = 0; i < rows.rows; ++i) {
    const int64_t begin = rows.offset(i);
    const int64_t end = rows.offset(i + 1);
    if (begin < 0 || end < begin || end > entries) return BadOffset(rows, i, entries);
    int64_t last = -1;
    for (int64_t entry = begin; entry < end; ++entry) {
      const int64_t column = rows.column(entry);
      if (column <= last || column >= rows.columns) return BadColumn(rows, i, entry, last);
      if (!std::isfinite(rows.value(entry))) return BadValue(rows, i, entry);
      last = column;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStrings(const StringsView& strings) {
  for (int64_t i = 0; i < strings.rows; ++i) {
    const int64_t bytes = static_cast<int64_t>(strings[i].size());
    if (strings.kind == ExampleKind::kText && !IsUtf8(strings[i])) {
      return MakeError(Code::kInvalidArgument, reason::kTextNotUtf8,
                       absl::StrCat("values[", i, "]"),
                       "expected text in UTF-8, got bytes that are not UTF-8; convert the text, or "
                       "send it as bytes for a kernel with unit=byte",
                       {{"row", absl::StrCat(i)}});
    }
    if (bytes <= kMaxStringBytes) continue;
    return MakeError(Code::kInvalidArgument, reason::kFieldTooLong, absl::StrCat("values[", i, "]"),
                     absl::StrCat("expected at most ", kMaxStringBytes, " bytes, got ", bytes,
                                  "; cut or split the example"),
                     {{"row", absl::StrCat(i)},
                      {"limit", absl::StrCat(kMaxStringBytes)},
                      {"actual", absl::StrCat(bytes)}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view ExampleKindName(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::kDense:
      return "dense";
    case ExampleKind::kSparse:
      return "sparse";
    case ExampleKind::kBytes:
      return "bytes";
    case ExampleKind::kText:
      break;
  }
  return "text";
}

void SparseRowsView::CopyRow(int64_t i, double* out) const {
  std::fill_n(out, columns, 0.0);
  for (int64_t entry = offset(i); entry < offset(i + 1); ++entry) {
    out[column(entry)] = value(entry);
  }
}

StringsView StringsView::Slice(int64_t first, int64_t count) const {
  StringsView slice{kind, values + first, count, 0};
  for (int64_t i = 0; i < count; ++i) slice.bytes += static_cast<int64_t>(slice[i].size());
  return slice;
}

int64_t ExamplesView::columns() const {
  if (const RowsView* rows = dense()) return rows->columns;
  if (const SparseRowsView* rows = sparse()) return rows->columns;
  return 0;
}

int64_t ExamplesView::bytes() const {
  if (const RowsView* rows = dense()) return rows->rows * rows->RowBytes();
  if (const SparseRowsView* rows = sparse()) return rows->bytes();
  return strings()->bytes;
}

ExampleKind ExamplesView::kind() const {
  if (dense() != nullptr) return ExampleKind::kDense;
  if (sparse() != nullptr) return ExampleKind::kSparse;
  return strings()->kind;
}

ExamplesView ExamplesView::Slice(int64_t first, int64_t count) const {
  return std::visit([&](const auto& block) { return ExamplesView(block.Slice(first, count)); },
                    block_);
}

void ExamplesView::CopyRow(int64_t i, double* out) const {
  if (const SparseRowsView* rows = sparse()) return rows->CopyRow(i, out);
  PHIMAP_CHECK(dense() != nullptr);
  dense()->CopyRow(i, out);
}

absl::Status CheckShape(const ExamplesView& examples, int64_t columns, bool self_values) {
  const bool numbers = examples.strings() == nullptr;
  const int64_t actual = examples.columns();
  if (numbers && (actual == columns || (self_values && actual == columns + 1))) {
    return absl::OkStatus();
  }
  const std::string field = absl::StrCat("examples.", examples.kind_name());
  if (!numbers) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kExampleKindMismatch, field,
                     absl::StrCat("the version maps rows of ", CountOf(columns, "number"),
                                  ", dense or sparse; got ", examples.kind_name()),
                     {{"actual", std::string(examples.kind_name())}});
  }
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kColumnsMismatch, absl::StrCat(field, ".columns"),
      absl::StrCat(
          "expected ", CountOf(columns, "column"),
          self_values ? absl::StrCat(", or ", columns + 1, " with K(x, x) as the last") : "",
          ", got ", actual),
      {{"expected", absl::StrCat(columns)}, {"actual", absl::StrCat(actual)}});
}

absl::Status CheckExamples(const ExamplesView& examples) {
  if (const RowsView* rows = examples.dense()) return CheckFinite(*rows);
  if (const SparseRowsView* rows = examples.sparse()) return CheckSparse(*rows);
  return CheckStrings(*examples.strings());
}

absl::Status WithRowOffset(const absl::Status& status, int64_t first) {
  if (status.ok() || first == 0) return status;
  std::optional<ErrorDetail> detail = DetailOf(status);
  int64_t row = 0;
  if (!detail.has_value() || !absl::SimpleAtoi(detail->metadata["row"], &row)) return status;
  const std::string actual = absl::StrCat(first + row);
  detail->metadata["row"] = actual;
  return MakeError(status.code(), detail->reason, absl::StrCat("rows[", actual, "]"),
                   WithoutField(status), detail->metadata, detail->retry_delay_ms);
}

}  // namespace phimap
