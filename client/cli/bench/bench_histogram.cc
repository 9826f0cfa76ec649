#include "client/cli/bench/bench_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace phimap::cli {
namespace {

constexpr int kBits = 7;
constexpr int64_t kPerOctave = int64_t{1} << kBits;
constexpr int kValueBits = 63;

// Number of low bits of `value` that its bucket ignores.
int ShiftOf(int64_t value) {
  return std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(value))) - kBits - 1);
}

// A value under 2 · kPerOctave is its own index. Each octave above has kPerOctave further indices.
int64_t IndexOf(int64_t value) {
  const int shift = ShiftOf(value);
  return shift * kPerOctave + (value >> shift);
}

int64_t MiddleOf(int64_t index) {
  const int64_t shift = std::max<int64_t>(0, index / kPerOctave - 1);
  const int64_t lower = (index - shift * kPerOctave) << shift;
  return lower + (shift == 0 ? 0 : int64_t{1} << (shift - 1));
}

}  // namespace

BenchHistogram::BenchHistogram() : buckets_((kValueBits - kBits + 1) * kPerOctave) {}

void BenchHistogram::Record(int64_t value) {
  value = std::max<int64_t>(0, value);
  ++buckets_[IndexOf(value)];
  ++count_;
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
}

void BenchHistogram::Merge(const BenchHistogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

int64_t BenchHistogram::Quantile(double q) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<int64_t>(std::ceil(q * static_cast<double>(count_)));
  if (wanted >= count_) return max_;
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= std::max<int64_t>(1, wanted)) {
      return std::min(max_, MiddleOf(static_cast<int64_t>(i)));
    }
  }
  return max_;
}

bool BenchHistogram::Tells(double q) const {
  return count_ - static_cast<int64_t>(std::ceil(q * static_cast<double>(count_))) >= kSamplesAbove;
}

double BenchHistogram::ShareBelow(int64_t value) const {
  if (count_ == 0) return 1;
  const auto end = buckets_.begin() + IndexOf(std::max<int64_t>(0, value));
  const int64_t below = std::accumulate(buckets_.begin(), end, int64_t{0});
  return static_cast<double>(below) / static_cast<double>(count_);
}

}  // namespace phimap::cli
