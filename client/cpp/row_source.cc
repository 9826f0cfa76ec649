#include "client/cpp/row_source.h"

#include <algorithm>

namespace phimap::client {

absl::StatusOr<ExampleBlock> MemoryRowSource::Next(const BlockLimits& limits) {
  const int32_t left = rows_.rows() - next_row_;
  // Mean size of a row.
  const int64_t row_bytes = std::max<int64_t>(1, rows_.bytes() / std::max(1, rows_.rows()));
  const int32_t count = std::min(left, limits.RowsOf(row_bytes));
  ExampleBlock block = rows_.Slice(next_row_, count);
  next_row_ += count;
  return block;
}

absl::Status MemoryRowSource::Rewind() {
  next_row_ = 0;
  return absl::OkStatus();
}

}  // namespace phimap::client
