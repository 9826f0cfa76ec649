#include "client/cpp/row_source.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/status/check.h"

namespace phimap::client {
namespace {

// Blocks are copied from and to memory as they are.
static_assert(std::endian::native == std::endian::little);

template <typename T>
RowBlock CopyToBlock(FloatType type, absl::Span<const T> values, int32_t columns) {
  PHIMAP_CHECK(columns > 0 && values.size() % columns == 0);
  RowBlock block;
  if (values.empty()) return block;
  block.type = type;
  block.rows = static_cast<int32_t>(values.size() / columns);
  block.columns = columns;
  block.values_le.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return block;
}

template <typename T>
double ValueAt(const std::string& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
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
  return CopyToBlock(FloatType::kFloat32, values, columns);
}

RowBlock MakeRowBlock(absl::Span<const double> values, int32_t columns) {
  return CopyToBlock(FloatType::kFloat64, values, columns);
}

absl::StatusOr<RowBlock> MemoryRowSource::Next(int32_t max_rows) {
  const int32_t rows = std::min(max_rows, rows_.rows - next_row_);
  if (rows <= 0) return RowBlock{};
  const size_t row_bytes = rows_.columns * ValueSizeBytes(rows_.type);
  RowBlock block{.type = rows_.type, .rows = rows, .columns = rows_.columns};
  block.values_le = rows_.values_le.substr(next_row_ * row_bytes, rows * row_bytes);
  next_row_ += rows;
  return block;
}

absl::Status MemoryRowSource::Rewind() {
  next_row_ = 0;
  return absl::OkStatus();
}

}  // namespace phimap::client
