// Blocks of examples to send and of received features. They are in wire format, so they move into
// and out of a message without a copy.
#ifndef PHIMAP_CLIENT_CPP_EXAMPLE_BLOCK_H_
#define PHIMAP_CLIENT_CPP_EXAMPLE_BLOCK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/types/span.h"

namespace phimap::client {

enum class FloatType { kFloat32, kFloat64 };

// Returns the bytes per value: 4 or 8.
int64_t ValueSizeBytes(FloatType type);

// A row-major block of rows, little-endian. INVARIANT: values_le.size() == rows * columns * value
// size. A block of no rows is empty and has no columns.
struct RowBlock {
  FloatType type = FloatType::kFloat32;
  int32_t rows = 0;
  int32_t columns = 0;
  std::string values_le = {};

  bool empty() const { return rows == 0; }
  // Returns one value as a double. REQUIRES: 0 <= row < rows, 0 <= column < columns.
  double At(int32_t row, int32_t column) const;
};

// Copies `values`, row after row, into a block. REQUIRES: columns > 0 and values.size() is a
// multiple of it.
RowBlock MakeRowBlock(absl::Span<const float> values, int32_t columns);
RowBlock MakeRowBlock(absl::Span<const double> values, int32_t columns);

// Rows in compressed sparse row (CSR) form, little-endian. Numbers that are not stored are 0.
struct SparseBlock {
  FloatType type = FloatType::kFloat64;
  int32_t columns = 0;
  // rows() + 1 int64 offsets into the entries; the first is 0.
  std::string row_offsets_le = {};
  // int32, counted from 0, increasing within a row.
  std::string column_indices_le = {};
  // Values of type `type`.
  std::string values_le = {};

  int32_t rows() const {
    return row_offsets_le.empty() ? 0 : static_cast<int32_t>(row_offsets_le.size() / 8) - 1;
  }
};

// Copies the arguments into a block. `row_offsets` has one offset per row and one more. REQUIRES:
// column_indices and values have row_offsets.back() entries.
SparseBlock MakeSparseBlock(absl::Span<const int64_t> row_offsets,
                            absl::Span<const int32_t> column_indices,
                            absl::Span<const float> values, int32_t columns);
SparseBlock MakeSparseBlock(absl::Span<const int64_t> row_offsets,
                            absl::Span<const int32_t> column_indices,
                            absl::Span<const double> values, int32_t columns);

// UTF-8 texts or arbitrary byte strings, for kernels of strings.
struct StringBlock {
  bool is_text = true;
  std::vector<std::string> values = {};
};

// A block of examples of one kind. Each example counts as a row.
class ExampleBlock {
 public:
  ExampleBlock() = default;
  ExampleBlock(RowBlock rows) : block_(std::move(rows)) {}           // NOLINT: implicit, it is one
  ExampleBlock(SparseBlock rows) : block_(std::move(rows)) {}        // NOLINT
  ExampleBlock(StringBlock strings) : block_(std::move(strings)) {}  // NOLINT

  int32_t rows() const;
  bool empty() const { return rows() == 0; }
  // Number of columns; 0 for strings.
  int32_t columns() const;
  // Size in bytes of all examples as they are sent.
  int64_t bytes() const;
  // Return the block's content; null if the block is of another kind.
  const RowBlock* dense() const { return std::get_if<RowBlock>(&block_); }
  const SparseBlock* sparse() const { return std::get_if<SparseBlock>(&block_); }
  const StringBlock* strings() const { return std::get_if<StringBlock>(&block_); }
  RowBlock* dense() { return std::get_if<RowBlock>(&block_); }
  SparseBlock* sparse() { return std::get_if<SparseBlock>(&block_); }
  StringBlock* strings() { return std::get_if<StringBlock>(&block_); }
  // Copies rows first .. first + count - 1. REQUIRES: the block has these rows.
  ExampleBlock Slice(int32_t first, int32_t count) const;

 private:
  std::variant<RowBlock, SparseBlock, StringBlock> block_;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_EXAMPLE_BLOCK_H_
