#include "core/landmark/split.h"

#include <algorithm>

#include "core/random/stream_ids.h"
#include "core/status/check.h"

namespace phimap {

int64_t DefaultPoolRows(int64_t landmarks, int64_t columns) {
  PHIMAP_CHECK(1 <= landmarks && landmarks <= (int64_t{1} << 58) && columns >= 1);
  const int64_t wanted = std::max<int64_t>(20 * landmarks, 20000);
  const int64_t fit = kMaxDefaultPoolBytes / static_cast<int64_t>(sizeof(double)) / columns;
  return std::max(std::min(wanted, fit), landmarks);
}

int64_t ReservoirCapacity(int64_t pool_rows) { return pool_rows + kMaxHeldOutRows; }

int64_t HeldOutCount(int64_t stream_rows, int64_t kept, int64_t landmarks) {
  PHIMAP_CHECK(stream_rows >= 0 && kept >= 0 && landmarks >= 0);
  return std::max<int64_t>(std::min({kMaxHeldOutRows, stream_rows / 10, kept - landmarks}), 0);
}

SampleSplit SplitSample(int64_t stream_rows, int64_t kept, int64_t landmarks, int64_t pool_rows,
                        uint64_t seed) {
  PHIMAP_CHECK(pool_rows >= landmarks && kept <= stream_rows);
  const int64_t held_out = HeldOutCount(stream_rows, kept, landmarks);
  const int64_t pool = std::min(pool_rows, kept - held_out);
  const std::vector<int64_t> order =
      FirstOfPermutation(kept, held_out + pool, RandomStream(seed, StreamId::kSplit));
  return {.pool = {order.begin() + held_out, order.end()},
          .held_out = {order.begin(), order.begin() + held_out},
          .deciding = {}};
}

int64_t DecidingCount(int64_t pool_rows) { return std::min(kMaxDecidingRows, pool_rows / 10); }

void SetDecidingApart(SampleSplit& split) {
  const auto end = split.pool.begin() + DecidingCount(static_cast<int64_t>(split.pool.size()));
  split.deciding.assign(split.pool.begin(), end);
  split.pool.erase(split.pool.begin(), end);
}

}  // namespace phimap
