#include "server/schedule/batch_policy.h"

#include <algorithm>

#include "core/status/check.h"

namespace phimap {
namespace {

// Three times the time to wake a thread.
constexpr absl::Duration kLongBatch = absl::Microseconds(150);
constexpr double kTileMultiplications = 64e6;
constexpr int64_t kTileBlock = 64;
constexpr int64_t kMaxTileRows = 65536;
// Rate that is assumed for a version before its first batch. If a version is even slower, its first
// request shows that.
constexpr double kAssumedMultiplicationsPerSecond = 1e9;

static_assert(kBatchRows <= kTileBlock, "several requests of a batch are computed as one tile");

}  // namespace

int64_t RequestsInBatch(absl::Span<const int64_t> queued_rows, int64_t max_rows) {
  PHIMAP_CHECK(!queued_rows.empty());
  int64_t taken = 1;
  int64_t rows = queued_rows[0];
  while (taken < static_cast<int64_t>(queued_rows.size()) &&
         rows + queued_rows[taken] <= max_rows) {
    rows += queued_rows[taken];
    ++taken;
  }
  return taken;
}

int64_t MaxRowsOfTake(int64_t queued_rows, int workers) {
  PHIMAP_CHECK(workers > 0);
  return std::clamp((queued_rows + workers - 1) / workers, kSharedBatchRows, kBatchRows);
}

int64_t WorthwhileBatches(int64_t requests, int64_t rows) {
  return std::min(requests, (rows + kSharedBatchRows - 1) / kSharedBatchRows);
}

absl::Duration ExpectedTime(double multiplications, double multiplications_per_second) {
  const double rate = multiplications_per_second > 0 ? multiplications_per_second
                                                     : kAssumedMultiplicationsPerSecond;
  return absl::Seconds(multiplications / rate);
}

bool WorthAWorker(int64_t rows, bool others_under_way) {
  return others_under_way && rows >= kBatchRows;
}

bool WorthHalving(int64_t rows, absl::Duration expected) {
  return rows >= kHandOverRows || (rows > kSharedBatchRows && expected >= kLongBatch);
}

bool QuantumIsOver(bool others_wait, absl::Duration computed) {
  return others_wait && computed >= kWorkerQuantum;
}

int64_t TileRows(int64_t multiplications_per_row) {
  const double rows = kTileMultiplications / std::max<int64_t>(1, multiplications_per_row);
  const int64_t blocks = static_cast<int64_t>(std::min<double>(rows, kMaxTileRows)) / kTileBlock;
  return std::max<int64_t>(1, blocks) * kTileBlock;
}

}  // namespace phimap
