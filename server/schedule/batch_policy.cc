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

void ComputeSpeed::Entry::Add(double rate) {
  recent[batches++ % recent.size()] = rate;
  std::array<double, 9> sorted = recent;
  const int count = std::min<int>(batches, recent.size());
  std::nth_element(sorted.begin(), sorted.begin() + count / 2, sorted.begin() + count);
  median = sorted[count / 2];
}

void ComputeSpeed::Learn(const std::shared_ptr<const Engine>& engine, double multiplications,
                         double seconds) {
  PHIMAP_CHECK(seconds > 0);
  if (Find(engine) == nullptr) {
    std::erase_if(entries_, [](const auto& entry) { return entry.second.engine.expired(); });
    entries_[engine.get()] = {.engine = engine, .recent = {}};
  }
  entries_[engine.get()].Add(multiplications / seconds);
}

double ComputeSpeed::Of(const std::shared_ptr<const Engine>& engine) const {
  const Entry* const known = Find(engine);
  return known == nullptr ? 0 : known->median;
}

const ComputeSpeed::Entry* ComputeSpeed::Find(const std::shared_ptr<const Engine>& engine) const {
  const auto found = entries_.find(engine.get());
  if (found == entries_.end()) return nullptr;
  const std::weak_ptr<const Engine>& owner = found->second.engine;
  const bool same = !owner.owner_before(engine) && !engine.owner_before(owner);
  return same ? &found->second : nullptr;
}

}  // namespace phimap
