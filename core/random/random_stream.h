// Named streams of random numbers: the only source of randomness in phimap.
//
// A stream is a pure function of (seed, name, index). So number 1,000,000 costs as much as number
// 0, threads share no state, and a seed always gives the same numbers on every platform. Repeatable
// builds depend on two invariants:
//
//  I1. The value at (seed, stream, index) never changes; random_stream_test compares it with
//      reference values. A better method of drawing numbers must use a new StreamId.
//  I2. One StreamId has one use. If a stream had two uses, their numbers would be correlated, and
//      no test would show it.
//
// Layout:   the key of Philox is the seed. The counter is (index/2 low, index/2 high, stream,
//           attempt). A block of 128 bits serves two indices. Only rejections in UniformBelow use
//           attempt > 0.
//
// Example:
//   RandomStream stream(seed, StreamId::kProjection);
//   r(i, j) = stream.Normal(i * cols + j);
#ifndef PHIMAP_CORE_RANDOM_RANDOM_STREAM_H_
#define PHIMAP_CORE_RANDOM_RANDOM_STREAM_H_

#include <array>
#include <cstdint>
#include <vector>

namespace phimap {

// Philox4x32-10: random numbers as a pure function of a key and a counter.
//
// Source:   Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
// Quality:  passes BigCrush; 2^128 blocks per key, 2^64 keys.
// Cost:     20 widening multiplications a block, about 20 ns. No state, no allocation, thread-safe.
using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxBlock = std::array<uint32_t, 4>;

// Maps 128-bit counters to blocks. For a fixed key the map is a bijection, so no block repeats.
PhiloxBlock Philox4x32(const PhiloxKey& key, const PhiloxBlock& counter);

// The streams, by name: core/random/stream_ids.h, which only the code that draws from one includes.
enum class StreamId : uint32_t;

// Immutable, thread-safe, 16 bytes; cheap to copy. Every index 0 … 2^64−1 is valid. A number costs
// about 20 ns, a normal number 30 ns.
class RandomStream {
 public:
  RandomStream(uint64_t seed, StreamId stream) : seed_(seed), stream_(stream) {}

  // Returns 64 independent fair bits.
  uint64_t Bits64(uint64_t index) const { return Bits64(index, 0); }
  // Returns a uniform number in (0, 1): one of the 2^52 midpoints (k + ½)·2^-52 for an integer k.
  // The number u is never 0 or 1, the distribution is symmetric about ½, and 1 − u is exact.
  double UniformOpen01(uint64_t index) const;
  // Returns a uniform number in 0 … n−1, without bias, by Lemire's multiply and reject (ACM TOMACS
  // 29, 2019). An attempt is rejected with a probability below n/2^64. The next attempt uses the
  // same index with the next attempt counter, so other indices are unaffected. REQUIRES n > 0.
  uint64_t UniformBelow(uint64_t index, uint64_t n) const;
  // Returns a standard normal number: NormalQuantile(UniformOpen01(index)). Its absolute value is
  // at most 8.21. Uses one index.
  double Normal(uint64_t index) const;

 private:
  uint64_t Bits64(uint64_t index, uint32_t attempt) const;

  uint64_t seed_;
  StreamId stream_;
};

// A stream read in order: each call uses the next index. Not thread-safe.
class RandomCursor {
 public:
  explicit RandomCursor(RandomStream stream, uint64_t first = 0)
      : stream_(stream), position_(first) {}

  uint64_t Bits64() { return stream_.Bits64(position_++); }
  double UniformOpen01() { return stream_.UniformOpen01(position_++); }
  uint64_t UniformBelow(uint64_t n) { return stream_.UniformBelow(position_++, n); }
  double Normal() { return stream_.Normal(position_++); }
  // The index that the next call uses.
  uint64_t position() const { return position_; }

 private:
  RandomStream stream_;
  uint64_t position_;
};

// Returns the first k numbers of a uniformly random permutation of 0 … n−1. They are a uniform
// subset of k numbers, in uniform order. The result for k is the beginning of the result for every
// larger k. REQUIRES: 0 ≤ k ≤ n.
//
// Method:   Fisher–Yates, stopped after k steps; step j uses index j of the stream.
// Cost:     O(n) time and 8n bytes; k draws.
std::vector<int64_t> FirstOfPermutation(int64_t n, int64_t k, const RandomStream& stream);

}  // namespace phimap

#endif  // PHIMAP_CORE_RANDOM_RANDOM_STREAM_H_
