// Counts the durations of a load test: any number of them in fixed memory. Computes quantiles with
// a bounded relative error.
#ifndef PHIMAP_CLIENT_CLI_BENCH_BENCH_HISTOGRAM_H_
#define PHIMAP_CLIENT_CLI_BENCH_BENCH_HISTOGRAM_H_

#include <cstdint>
#include <vector>

namespace phimap::cli {

// Counts integers, usually nanoseconds, after the idea of HdrHistogram. Each number below 256 has
// its own bucket; above, the range from each power of two to the next is divided into 128 equal
// buckets. The relative error of a quantile is therefore at most kRelativeError, whatever the
// range. Takes 60 kB. Not thread-safe.
class BenchHistogram {
 public:
  // A bucket is at most 1/128 as wide as its lower end, and a quantile is the middle of its bucket.
  static constexpr double kRelativeError = 1.0 / 256;
  static constexpr int64_t kSamplesAbove = 10;

  BenchHistogram();

  // A negative value counts as 0.
  void Record(int64_t value);
  void Merge(const BenchHistogram& other);

  int64_t count() const { return count_; }
  // Exact; 0 if nothing was recorded.
  int64_t max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // Returns, within kRelativeError, the smallest recorded value that is not exceeded by a share `q`
  // of all values; 0 if nothing was recorded. Quantile(1) is max(). REQUIRES: 0 <= q <= 1.
  int64_t Quantile(double q) const;
  // Whether at least kSamplesAbove recorded values lie above Quantile(q). A quantile that depends
  // on fewer values describes the run rather than the server. REQUIRES: 0 <= q <= 1.
  bool Tells(double q) const;
  // Returns the share of the recorded values below `value`, as far as their buckets tell; 1 if
  // nothing was recorded. Values in the same bucket as `value` do not count as below it.
  double ShareBelow(int64_t value) const;

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_HISTOGRAM_H_
