// A uniform sample of a stream of unknown length, in fixed memory.
#ifndef PHIMAP_CORE_LANDMARK_RESERVOIR_H_
#define PHIMAP_CORE_LANDMARK_RESERVOIR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/linalg/matrix.h"
#include "core/random/random_stream.h"

namespace phimap {

// A uniform sample of min(n, capacity) of the n rows seen so far: every subset of that size is
// equally likely. Until the capacity is reached, all rows are kept, and row i is in slot i. After
// that, each newly kept row replaces the row in a random slot, so slots are in no particular order.
//
// The kept rows depend only on (seed, capacity, rows), not on how the stream is divided into
// blocks. Rows that are not kept need not be converted or read:
//
//   while (row < end) {
//     const int64_t skip = std::min(reservoir.RowsToSkip(), end - row);
//     reservoir.Skip(skip);
//     row += skip;
//     if (row < end) reservoir.Keep(ConvertedRow(row++));
//   }
//
// Method:   Algorithm L (Li, "Reservoir-sampling algorithms of time complexity O(n(1 + log(N/n)))",
//           ACM TOMS 20, 1994, after Vitter). Each row has a uniform random key, and the rows with
//           the smallest keys are kept. W is distributed as the largest of the `capacity` kept
//           keys. The number of rows to skip until the next row with a smaller key is geometric:
//           floor(log u / log(1 − W)) with a uniform u.
// Memory:   min(n, capacity) rows of float64, and 8 bytes per row for its stream index. The rows
//           are allocated in blocks as they arrive; a block is at most 256 KiB or one row. With
//           Form::kSparse, a row takes 12 bytes per number other than 0, but at most 8 bytes per
//           number in total, plus 64 bytes. Keep may throw std::bad_alloc.
// Cost:     capacity·(1 + ln(n/capacity)) rows are copied, each with three draws (about 120 ns).
//           Skipping is free.
// Range:    streams of up to 2^62 rows.
//
// Not thread-safe.
class Reservoir {
 public:
  static constexpr int64_t kMaxStreamRows = int64_t{1} << 62;

  // Form in which rows are stored. With kSlots, rows are not stored: the single number of a row is
  // its slot, and the caller stores the examples by slot.
  enum class Form { kDense, kSparse, kSlots };

  // Draws from StreamId::kReservoir of `seed`. The form has no influence on which rows are kept.
  // REQUIRES capacity ≥ 1 and columns ≥ 1; with kSlots, columns must be 1.
  Reservoir(int64_t capacity, int64_t columns, uint64_t seed, Form form = Form::kDense);

  // Number of rows to skip before the next kept row; 0 if the next row is to be kept.
  int64_t RowsToSkip() const { return next_kept_ - rows_seen_; }
  // Skips rows. REQUIRES 0 ≤ rows ≤ RowsToSkip().
  void Skip(int64_t rows);
  // Keeps the next row. Copies `columns` numbers from `row` to a slot and returns the slot; the row
  // that was in the slot is lost. With kSlots, `row` may be null. REQUIRES RowsToSkip() == 0.
  int64_t Keep(const double* row);
  // Calls Skip or Keep for each row of the block. REQUIRES block.cols() == columns.
  void Offer(ConstMatrixView<double> block);

  int64_t capacity() const { return capacity_; }
  int64_t columns() const { return columns_; }
  int64_t rows_seen() const { return rows_seen_; }
  // Rows kept: min(rows_seen, capacity).
  int64_t size() const { return static_cast<int64_t>(stream_rows_.size()); }

  // Copies the row in `slot`, 0 ≤ slot < size(), to `columns` numbers.
  void CopyRow(int64_t slot, double* out) const;
  // Position in the stream of the row in `slot`, from 0.
  int64_t stream_row(int64_t slot) const { return stream_rows_[slot]; }
  // Returns a matrix of slots.size() × columns whose rows are the rows in `slots`, in that order.
  Matrix<double> Gather(absl::Span<const int64_t> slots) const;

 private:
  // Returns the slot for the next kept row: a new slot until the reservoir is full, then a random
  // one.
  int64_t TakeSlot();
  // Draws W and the gap to the next kept row. REQUIRES that the reservoir is full.
  void DrawNextKept();
  // Returns the row in `slot`. Only for kDense.
  double* DenseRow(int64_t slot) const;
  void KeepSparse(int64_t slot, const double* row);

  // All of a row's numbers, or those other than 0 and their columns.
  struct SparseRow {
    std::vector<int32_t> columns;
    std::vector<double> values;
  };

  int64_t capacity_;
  int64_t columns_;
  Form form_;
  int64_t rows_per_block_;
  RandomCursor random_;

  int64_t rows_seen_ = 0;
  int64_t next_kept_ = 0;  // invariant: rows_seen_ ≤ next_kept_
  double w_ = 1.0;
  std::vector<int64_t> stream_rows_;
  std::vector<AlignedArray<double>> blocks_;
  std::vector<SparseRow> sparse_rows_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_RESERVOIR_H_
