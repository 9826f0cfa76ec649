#include "core/landmark/reservoir.h"

#include <algorithm>
#include <limits>

#include "core/random/portable_math.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Small enough that a reservoir of few rows costs little, large enough that blocks are few.
constexpr int64_t kBlockBytes = int64_t{256} << 10;

int64_t RowsPerBlock(int64_t capacity, int64_t columns) {
  const int64_t fit = kBlockBytes / static_cast<int64_t>(sizeof(double)) / columns;
  return std::clamp<int64_t>(fit, 1, capacity);
}

}  // namespace

Reservoir::Reservoir(int64_t capacity, int64_t columns, uint64_t seed)
    : capacity_(capacity),
      columns_(columns),
      rows_per_block_(0),
      random_(RandomStream(seed, StreamId::kReservoir)) {
  PHIMAP_CHECK(capacity >= 1 && columns >= 1);
  rows_per_block_ = RowsPerBlock(capacity, columns);
}

void Reservoir::Skip(int64_t rows) {
  PHIMAP_CHECK(0 <= rows && rows <= RowsToSkip() && rows <= kMaxStreamRows - rows_seen_);
  rows_seen_ += rows;
}

void Reservoir::Keep(const double* row) {
  PHIMAP_CHECK(RowsToSkip() == 0 && rows_seen_ < kMaxStreamRows);
  const int64_t slot = TakeSlot();
  std::copy_n(row, columns_, MutableRow(slot));
  stream_rows_[slot] = rows_seen_++;
  if (size() < capacity_) {
    next_kept_ = rows_seen_;
  } else {
    DrawNextKept();
  }
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
  if (slot == static_cast<int64_t>(blocks_.size()) * rows_per_block_) {
    blocks_.emplace_back(std::min(rows_per_block_, capacity_ - slot) * columns_);
  }
  stream_rows_.push_back(0);
  return slot;
}

void Reservoir::DrawNextKept() {
  // The keys above W are gone; the largest of `capacity` uniform keys below W is W·u^(1/capacity).
  // Where u^(1/capacity) rounds to 1 at the start, log(1 − W) is −inf and the gap 0, as it should
  // be.
  w_ *= Exp(Log(random_.UniformOpen01()) / static_cast<double>(capacity_));
  const double gap = Log(random_.UniformOpen01()) / Log1p(-w_);
  // Also true when W has fallen under 2^-1074 and the gap is +inf: no further row within 2^62 is
  // kept.
  const bool beyond = !(gap < static_cast<double>(kMaxStreamRows));
  next_kept_ = beyond ? std::numeric_limits<int64_t>::max()
                      : rows_seen_ + static_cast<int64_t>(gap);  // gap ≥ 0: truncation is floor
}

const double* Reservoir::row(int64_t slot) const {
  PHIMAP_CHECK(0 <= slot && slot < size());
  return blocks_[slot / rows_per_block_].data() + slot % rows_per_block_ * columns_;
}

double* Reservoir::MutableRow(int64_t slot) { return const_cast<double*>(row(slot)); }

Matrix<double> Reservoir::Gather(absl::Span<const int64_t> slots) const {
  Matrix<double> rows = Matrix<double>::Uninit(static_cast<int64_t>(slots.size()), columns_);
  for (size_t i = 0; i < slots.size(); ++i) {
    std::copy_n(row(slots[i]), columns_, rows.row(static_cast<int64_t>(i)));
  }
  return rows;
}

}  // namespace phimap
