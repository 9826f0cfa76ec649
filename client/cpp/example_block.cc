#include "client/cpp/example_block.h"

#include <bit>
#include <cstring>

#include "core/status/check.h"

namespace phimap::client {
namespace {

// Numbers are copied to and from blocks, which are little-endian, without a change of byte order.
static_assert(std::endian::native == std::endian::little);

template <typename T>
FloatType TypeOf() {
  return sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
}

template <typename T>
std::string BytesOf(absl::Span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
RowBlock CopyRows(absl::Span<const T> values, int32_t columns) {
  PHIMAP_CHECK(columns > 0 && values.size() % columns == 0);
  if (values.empty()) return RowBlock{};
  return {TypeOf<T>(), static_cast<int32_t>(values.size() / columns), columns, BytesOf(values)};
}

template <typename T>
SparseBlock CopyEntries(absl::Span<const int64_t> row_offsets,
                        absl::Span<const int32_t> column_indices, absl::Span<const T> values,
                        int32_t columns) {
  PHIMAP_CHECK(!row_offsets.empty() && row_offsets.back() == static_cast<int64_t>(values.size()) &&
               column_indices.size() == values.size());
  return {TypeOf<T>(), columns, BytesOf(row_offsets), BytesOf(column_indices), BytesOf(values)};
}

template <typename T>
T ValueAt(const std::string& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

RowBlock SliceOf(const RowBlock& block, int32_t first, int32_t count) {
  if (count == 0) return RowBlock{};
  const size_t row_bytes = static_cast<size_t>(block.columns * ValueSizeBytes(block.type));
  return {block.type, count, block.columns,
          block.values_le.substr(first * row_bytes, count * row_bytes)};
}

SparseBlock SliceOf(const SparseBlock& block, int32_t first, int32_t count) {
  if (count == 0) return SparseBlock{};
  std::vector<int64_t> offsets(static_cast<size_t>(count) + 1);
  for (int32_t i = 0; i <= count; ++i) {
    offsets[i] = ValueAt<int64_t>(block.row_offsets_le, first + i);
  }
  const size_t begin = static_cast<size_t>(offsets.front());
  const size_t entries = static_cast<size_t>(offsets.back()) - begin;
  for (int64_t& offset : offsets) offset -= static_cast<int64_t>(begin);
  const size_t value_bytes = static_cast<size_t>(ValueSizeBytes(block.type));
  return {block.type, block.columns, BytesOf(absl::Span<const int64_t>(offsets)),
          block.column_indices_le.substr(begin * sizeof(int32_t), entries * sizeof(int32_t)),
          block.values_le.substr(begin * value_bytes, entries * value_bytes)};
}

StringBlock SliceOf(const StringBlock& block, int32_t first, int32_t count) {
  const auto begin = block.values.begin() + first;
  return {block.is_text, {begin, begin + count}};
}

int64_t BytesIn(const RowBlock& block) { return static_cast<int64_t>(block.values_le.size()); }
int64_t BytesIn(const SparseBlock& block) {
  return static_cast<int64_t>(block.row_offsets_le.size() + block.column_indices_le.size() +
                              block.values_le.size());
}
int64_t BytesIn(const StringBlock& block) {
  int64_t bytes = 0;
  for (const std::string& value : block.values) bytes += static_cast<int64_t>(value.size());
  return bytes;
}

}  // namespace

int64_t ValueSizeBytes(FloatType type) { return type == FloatType::kFloat32 ? 4 : 8; }

double RowBlock::At(int32_t row, int32_t column) const {
  PHIMAP_CHECK(0 <= row && row < rows && 0 <= column && column < columns);
  const int64_t index = int64_t{row} * columns + column;
  return type == FloatType::kFloat32 ? ValueAt<float>(values_le, index)
                                     : ValueAt<double>(values_le, index);
}

RowBlock MakeRowBlock(absl::Span<const float> values, int32_t columns) {
  return CopyRows(values, columns);
}

RowBlock MakeRowBlock(absl::Span<const double> values, int32_t columns) {
  return CopyRows(values, columns);
}

SparseBlock MakeSparseBlock(absl::Span<const int64_t> row_offsets,
                            absl::Span<const int32_t> column_indices,
                            absl::Span<const float> values, int32_t columns) {
  return CopyEntries(row_offsets, column_indices, values, columns);
}

SparseBlock MakeSparseBlock(absl::Span<const int64_t> row_offsets,
                            absl::Span<const int32_t> column_indices,
                            absl::Span<const double> values, int32_t columns) {
  return CopyEntries(row_offsets, column_indices, values, columns);
}

int32_t ExampleBlock::rows() const {
  if (dense() != nullptr) return dense()->rows;
  if (sparse() != nullptr) return sparse()->rows();
  return static_cast<int32_t>(strings()->values.size());
}

int32_t ExampleBlock::columns() const {
  if (dense() != nullptr) return dense()->columns;
  return sparse() != nullptr ? sparse()->columns : 0;
}

int64_t ExampleBlock::bytes() const {
  return std::visit([](const auto& block) { return BytesIn(block); }, block_);
}

ExampleBlock ExampleBlock::Slice(int32_t first, int32_t count) const {
  PHIMAP_CHECK(first >= 0 && count >= 0 && count <= rows() - first);
  return std::visit([&](const auto& block) { return ExampleBlock(SliceOf(block, first, count)); },
                    block_);
}

}  // namespace phimap::client
