#include "core/landmark/reservoir.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/random/portable_math.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Bytes per block. Blocks are small enough that a reservoir with few rows wastes little memory, and
// large enough that there are few of them.
constexpr int64_t kBlockBytes = int64_t{256} << 10;

int64_t RowsPerBlock(int64_t capacity, int64_t columns) {
  const int64_t fit = kBlockBytes / static_cast<int64_t>(sizeof(double)) / columns;
  return std::clamp<int64_t>(fit, 1, capacity);
}

}  // namespace

Reservoir::Reservoir(int64_t capacity, int64_t columns, uint64_t seed, Form form)
    : capacity_(capacity),
      columns_(columns),
      form_(form),
      rows_per_block_(0),
      random_(RandomStream(seed, StreamId::kReservoir)) {
  PHIMAP_CHECK(capacity >= 1 && columns >= 1 && (form != Form::kSlots || columns == 1));
  rows_per_block_ = RowsPerBlock(capacity, columns);
}

void Reservoir::Skip(int64_t rows) {
  PHIMAP_CHECK(0 <= rows && rows <= RowsToSkip() && rows <= kMaxStreamRows - rows_seen_);
  rows_seen_ += rows;
}

int64_t Reservoir::Keep(const double* row) {
  PHIMAP_CHECK(RowsToSkip() == 0 && rows_seen_ < kMaxStreamRows);
  const int64_t slot = TakeSlot();
  if (form_ == Form::kDense) std::copy_n(row, columns_, DenseRow(slot));
  if (form_ == Form::kSparse) KeepSparse(slot, row);
  stream_rows_[slot] = rows_seen_++;
  if (size() < capacity_) {
    next_kept_ = rows_seen_;
  } else {
    DrawNextKept();
  }
  return slot;
}

// Stores all numbers of a row if more than half of them are not 0, because that takes less memory.
void Reservoir::KeepSparse(int64_t slot, const double* row) {
  int64_t count = 0;
  for (int64_t j = 0; j < columns_; ++j) count += row[j] != 0 ? 1 : 0;
  SparseRow kept;
  if (2 * count > columns_) {
    kept.values.assign(row, row + columns_);
  } else {
    kept.columns.reserve(static_cast<size_t>(count));
    kept.values.reserve(static_cast<size_t>(count));
    for (int64_t j = 0; j < columns_; ++j) {
      if (row[j] == 0) continue;
      kept.columns.push_back(static_cast<int32_t>(j));
      kept.values.push_back(row[j]);
    }
  }
  sparse_rows_[slot] = std::move(kept);
}

void Reservoir::Offer(ConstMatrixView<double> block) {
  PHIMAP_CHECK(block.cols() == columns_);
  int64_t i = 0;
  while (i < block.rows()) {
    const int64_t skip = std::min(RowsToSkip(), block.rows() - i);
    Skip(skip);
    i += skip;
    if (i < block.rows()) Keep(block.row(i++));
  }
}

int64_t Reservoir::TakeSlot() {
  if (size() == capacity_) return static_cast<int64_t>(random_.UniformBelow(capacity_));
  const int64_t slot = size();
  if (form_ == Form::kSparse) sparse_rows_.emplace_back();
  if (form_ == Form::kDense && slot == static_cast<int64_t>(blocks_.size()) * rows_per_block_) {
    blocks_.emplace_back(std::min(rows_per_block_, capacity_ - slot) * columns_);
  }
  stream_rows_.push_back(0);
  return slot;
}

void Reservoir::DrawNextKept() {
  // Updates w_, the W of Algorithm L: an upper bound that all kept keys are below. The maximum of
  // the kept keys is distributed as W·u^(1/capacity), where u is uniform. If u^(1/capacity) rounds
  // to 1 at the start, log(1 − W) is −inf and the gap is 0, which is correct.
  w_ *= Exp(Log(random_.UniformOpen01()) / static_cast<double>(capacity_));
  const double gap = Log(random_.UniformOpen01()) / Log1p(-w_);
  // True if no further row of the stream will be kept. This includes the case that W has
  // underflowed to 0 and the gap is +inf.
  const bool beyond = !(gap < static_cast<double>(kMaxStreamRows));
  next_kept_ = beyond ? std::numeric_limits<int64_t>::max()
                      : rows_seen_ + static_cast<int64_t>(gap);  // gap ≥ 0: truncation is floor
}

double* Reservoir::DenseRow(int64_t slot) const {
  return blocks_[slot / rows_per_block_].data() + slot % rows_per_block_ * columns_;
}

void Reservoir::CopyRow(int64_t slot, double* out) const {
  PHIMAP_CHECK(0 <= slot && slot < size());
  switch (form_) {
    case Form::kDense:
      std::copy_n(DenseRow(slot), columns_, out);
      return;
    case Form::kSlots:
      *out = static_cast<double>(slot);
      return;
    case Form::kSparse:
      break;
  }
  const SparseRow& kept = sparse_rows_[slot];
  if (static_cast<int64_t>(kept.values.size()) == columns_) {
    std::copy_n(kept.values.data(), columns_, out);
    return;
  }
  std::fill_n(out, columns_, 0.0);
  for (size_t k = 0; k < kept.columns.size(); ++k) out[kept.columns[k]] = kept.values[k];
}

Matrix<double> Reservoir::Gather(absl::Span<const int64_t> slots) const {
  Matrix<double> rows = Matrix<double>::Uninit(static_cast<int64_t>(slots.size()), columns_);
  for (size_t i = 0; i < slots.size(); ++i) CopyRow(slots[i], rows.row(static_cast<int64_t>(i)));
  return rows;
}

}  // namespace phimap
