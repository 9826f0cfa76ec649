// Blocks of examples as they arrive over the wire: dense rows, sparse rows, or strings. The types
// are views and own nothing.
#ifndef PHIMAP_CORE_PLAN_EXAMPLES_H_
#define PHIMAP_CORE_PLAN_EXAMPLES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/plan/rows.h"

namespace phimap {

// Longest string among the examples, in bytes.
inline constexpr int64_t kMaxStringBytes = int64_t{1} << 20;

// Rows in compressed sparse row form; numbers without an entry are zero. Entries offset(i) …
// offset(i+1)−1 belong to row i, with rising columns. Little-endian, at any alignment. REQUIRES:
// CheckExamples is OK, except to call CheckExamples and to read the shape and the lengths.
struct SparseRowsView {
  FloatType type = FloatType::kFloat64;
  int64_t rows = 0;
  int64_t columns = 0;
  const char* offsets = nullptr;  // rows + 1 int64
  const char* indices = nullptr;  // int32
  const char* values = nullptr;   // of `type`

  int64_t offset(int64_t i) const { return Load<int64_t>(offsets, i); }
  int32_t column(int64_t entry) const { return Load<int32_t>(indices, entry); }
  double value(int64_t entry) const {
    return type == FloatType::kFloat32 ? Load<float>(values, entry) : Load<double>(values, entry);
  }
  int64_t entries() const { return rows == 0 ? 0 : offset(rows) - offset(0); }
  int64_t bytes() const { return 8 * (rows + 1) + entries() * (4 + FloatTypeBytes(type)); }
  SparseRowsView Slice(int64_t first, int64_t count) const {
    return {type, count, columns, offsets + 8 * first, indices, values};
  }
  // Copies row i as a dense row in float64. REQUIRES: `out` has room for `columns` numbers.
  void CopyRow(int64_t i, double* out) const;

 private:
  template <typename T>
  static T Load(const char* from, int64_t index) {
    T value;
    std::memcpy(&value, from + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return value;
  }
};

// Kind of an example. The numbers are part of the artifact format and are never reused.
enum class ExampleKind : uint8_t { kDense = 1, kBytes = 2, kText = 3, kSparse = 4 };

// Returns "dense", "sparse", "bytes" or "text", as in errors and in the names of the API's fields.
absl::string_view ExampleKindName(ExampleKind kind);
inline bool IsString(ExampleKind kind) {
  return kind == ExampleKind::kBytes || kind == ExampleKind::kText;
}

// Texts in UTF-8 (kText), or opaque bytes (kBytes).
struct StringsView {
  ExampleKind kind = ExampleKind::kText;
  const std::string* const* values = nullptr;
  int64_t rows = 0;
  // Bytes of all values.
  int64_t bytes = 0;

  const std::string& operator[](int64_t i) const { return *values[i]; }
  StringsView Slice(int64_t first, int64_t count) const;
};

// One block of any kind. The number of rows is the number of examples, also for strings.
class ExamplesView {
 public:
  ExamplesView() = default;
  ExamplesView(const RowsView& rows) : block_(rows) {}           // NOLINT: implicit, it is one
  ExamplesView(const SparseRowsView& rows) : block_(rows) {}     // NOLINT
  ExamplesView(const StringsView& strings) : block_(strings) {}  // NOLINT

  int64_t rows() const {
    return std::visit([](const auto& block) { return block.rows; }, block_);
  }
  // Numbers per row; 0 for strings.
  int64_t columns() const;
  // Bytes that the values take.
  int64_t bytes() const;
  ExampleKind kind() const;
  absl::string_view kind_name() const { return ExampleKindName(kind()); }
  // Null unless the block is of that kind.
  const RowsView* dense() const { return std::get_if<RowsView>(&block_); }
  const SparseRowsView* sparse() const { return std::get_if<SparseRowsView>(&block_); }
  const StringsView* strings() const { return std::get_if<StringsView>(&block_); }
  // Rows first .. first + count - 1.
  ExamplesView Slice(int64_t first, int64_t count) const;
  // Copies a row of numbers, widened to float64. REQUIRES: not strings; room for columns() numbers.
  void CopyRow(int64_t i, double* out) const;

 private:
  std::variant<RowsView, SparseRowsView, StringsView> block_;
};

// Checks that the examples are rows of `columns` numbers. If `self_values` is true, rows of columns
// + 1 numbers are also accepted, and their last number is K(x, x). Otherwise returns
// INVALID_ARGUMENT (EXAMPLE_KIND_MISMATCH, or COLUMNS_MISMATCH with both numbers), field
// "examples.KIND" or "examples.KIND.columns".
absl::Status CheckShape(const ExamplesView& examples, int64_t columns, bool self_values = false);

// Checks the values of a block whose shape and lengths were already checked. Makes one pass.
// Returns OK if
//   every value is finite (VALUE_NOT_FINITE);
//   offsets never fall and never exceed the number of entries (OFFSETS_INVALID);
//   columns are in range and rise within a row (COLUMN_INDEX_INVALID);
//   texts are UTF-8 (TEXT_NOT_UTF8);
//   strings are no longer than kMaxStringBytes (FIELD_TOO_LONG).
// Otherwise returns INVALID_ARGUMENT. Its field is the place of the first fault: rows[i].columns[j]
// for dense rows, and values[i] for strings. For sparse rows it is column_indices[e] or values[e],
// and the row is in the metadata.
absl::Status CheckExamples(const ExamplesView& examples);

// Makes an error that counts its row from row `first` of a block count from the start of the block:
// in its field and its metadata "row".
absl::Status WithRowOffset(const absl::Status& status, int64_t first);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_EXAMPLES_H_
