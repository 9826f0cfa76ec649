// Divides the sample of a stream into the pool, from which landmarks are drawn, and held-out rows,
// on which the certificate is measured.
#ifndef PHIMAP_CORE_LANDMARK_SPLIT_H_
#define PHIMAP_CORE_LANDMARK_SPLIT_H_

#include <cstdint>
#include <vector>

namespace phimap {

// Maximum number of held-out rows. The kernel error's standard error over 1,000 disjoint pairs is 3
// % of its deviation.
inline constexpr int64_t kMaxHeldOutRows = 2000;
// Bound on the default pool's bytes, 8 a number.
inline constexpr int64_t kMaxDefaultPoolBytes = int64_t{256} << 20;

// Bound on the factor that rpcholesky keeps of a default pool, 8·landmarks bytes a row.
inline constexpr int64_t kMaxDefaultFactorBytes = int64_t{1} << 30;

// Pool rows when the spec leaves them open: max(20·landmarks, 20,000), cut to kMaxDefaultPoolBytes,
// but never below `landmarks`. REQUIRES 1 ≤ landmarks ≤ 2^58 and columns ≥ 1.
int64_t DefaultPoolRows(int64_t landmarks, int64_t columns);

// Number of rows that decide how many landmarks suffice (CountRule): a tenth of the pool that they
// are taken from, at most 1,000. The 95 % quantile of 20 rows is the second largest value.
inline constexpr int64_t kMaxDecidingRows = 1000;
inline constexpr int64_t kMinDecidingRows = 20;
inline constexpr int64_t kMinDecidedPool = 10 * kMinDecidingRows;
// The shortest stream that has such a pool and a tenth of held-out rows.
inline constexpr int64_t kMinDecidedStream = 222;

// Capacity of the reservoir that a pool of `pool_rows` and its held-out rows are split from.
int64_t ReservoirCapacity(int64_t pool_rows);

// Number of rows to hold out: min(2,000, stream_rows/10, kept − landmarks), at least 0. Landmarks
// have priority: if there are too few rows for both, the mapping is unmeasured, but the build does
// not fail. REQUIRES all arguments ≥ 0.
int64_t HeldOutCount(int64_t stream_rows, int64_t kept, int64_t landmarks);

// Slots of a reservoir. The lists are disjoint. Each is in random order, so each prefix is a
// uniform sample.
struct SampleSplit {
  std::vector<int64_t> pool;
  std::vector<int64_t> held_out;
  // Disjoint from both if deciding rows find the number of landmarks; else empty.
  std::vector<int64_t> deciding;
};

// Divides the `kept` rows of a reservoir at random (StreamId::kSplit of `seed`): HeldOutCount rows
// are held out, of the rest at most `pool_rows` form the pool. Since the reservoir is a uniform
// sample of the stream, so are both parts. The pool has at least min(kept, landmarks) rows.
// REQUIRES kept ≤ stream_rows and pool_rows ≥ landmarks.
//
// Cost:     O(kept) time, 8 bytes a kept row.
SampleSplit SplitSample(int64_t stream_rows, int64_t kept, int64_t landmarks, int64_t pool_rows,
                        uint64_t seed);

// Number of deciding rows for a pool of `pool_rows` rows.
int64_t DecidingCount(int64_t pool_rows);

// Moves the first rows of the pool to the deciding rows.
void SetDecidingApart(SampleSplit& split);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_SPLIT_H_
