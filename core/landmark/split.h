// Divides the sample of a stream into the pool, from which landmarks are drawn, and held-out rows,
// on which the certificate is measured.
#ifndef PHIMAP_CORE_LANDMARK_SPLIT_H_
#define PHIMAP_CORE_LANDMARK_SPLIT_H_

#include <cstdint>
#include <vector>

namespace phimap {

// Maximum number of held-out rows. They make 1,000 disjoint pairs. The mean kernel error over these
// has a standard error of 3 % of the deviation of a single pair's error.
inline constexpr int64_t kMaxHeldOutRows = 2000;
// Maximum number of held-out rows under a kernel that phimap does not compute, whose values are
// expensive.
inline constexpr int64_t kMaxRemoteHeldOutRows = 512;
// Maximum size of the default pool in bytes, at 8 bytes per number.
inline constexpr int64_t kMaxDefaultPoolBytes = int64_t{256} << 20;

// Largest size in bytes of the factor that rpcholesky keeps for a pool of the default size. The
// factor takes 8·landmarks bytes per row.
inline constexpr int64_t kMaxDefaultFactorBytes = int64_t{1} << 30;

// Returns the number of pool rows if the spec does not set it: max(20·landmarks, 20,000), limited
// by kMaxDefaultPoolBytes, but at least `landmarks`. REQUIRES 1 ≤ landmarks ≤ 2^58 and columns ≥ 1.
int64_t DefaultPoolRows(int64_t landmarks, int64_t columns);

// Limits for deciding rows, which determine how many landmarks suffice (CountRule): a tenth of the
// pool, at most 1,000 and at least 20. With fewer than 59 rows no order statistic bounds the
// 95 % quantile with confidence 95 %.
inline constexpr int64_t kMaxDecidingRows = 1000;
inline constexpr int64_t kMinDecidingRows = 20;
inline constexpr int64_t kMinDecidedPool = 10 * kMinDecidingRows;
// Length of the shortest stream that leaves kMinDecidedPool rows for the pool after a tenth of the
// rows is held out.
inline constexpr int64_t kMinDecidedStream = 222;

// Returns the capacity of the reservoir for a pool of `pool_rows` rows and the held-out rows.
int64_t ReservoirCapacity(int64_t pool_rows);

// Returns the number of rows to hold out: the smallest of 2,000, stream_rows/10 and kept −
// landmarks, but at least 0. Landmarks have priority: if there are too few rows for both, the build
// succeeds without measurements. REQUIRES all arguments ≥ 0.
int64_t HeldOutCount(int64_t stream_rows, int64_t kept, int64_t landmarks);

// Slots of a reservoir. The lists are disjoint and in random order, so each prefix of a list is a
// uniform sample.
struct SampleSplit {
  std::vector<int64_t> pool;
  std::vector<int64_t> held_out;
  // Deciding rows; empty if the number of landmarks is given.
  std::vector<int64_t> deciding;
};

// Divides the `kept` rows of a reservoir at random (StreamId::kSplit of `seed`) into held-out rows
// and a pool. HeldOutCount rows are held out, and at most `pool_rows` of the other rows form the
// pool. Both parts are uniform samples of the stream, because the reservoir is one. The pool has at
// least min(kept, landmarks) rows.
//
// Cost: O(kept) time, 8 bytes per kept row. REQUIRES kept ≤ stream_rows and pool_rows ≥ landmarks.
SampleSplit SplitSample(int64_t stream_rows, int64_t kept, int64_t landmarks, int64_t pool_rows,
                        uint64_t seed);

// Returns the number of deciding rows for a pool of `pool_rows` rows.
int64_t DecidingCount(int64_t pool_rows);

// Moves the first rows of the pool to `deciding`, as many as DecidingCount says.
void SetDecidingApart(SampleSplit& split);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_SPLIT_H_
