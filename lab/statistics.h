// Statistics of repeated runs.
#ifndef PHIMAP_LAB_STATISTICS_H_
#define PHIMAP_LAB_STATISTICS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace phimap::lab {

// REQUIRES: at least one number.
double Mean(absl::Span<const double> numbers);
// Returns √(Σ(x − mean)²/(n − 1)); 0 for a single number.
double Deviation(absl::Span<const double> numbers);
// Returns Deviation/√n.
double StandardError(absl::Span<const double> numbers);
double Median(absl::Span<const double> numbers);

struct Interval {
  double low = 0;
  double high = 0;

  bool Contains(double x) const { return low <= x && x <= high; }
};

// Returns the interval that contains, with probability 99.8 %, the mean of `count` runs drawn with
// replacement from `runs`. Its ends are the quantiles at .001 and .999 of 100,000 such means. A
// number that was printed as a mean of `count` runs agrees if it lies in this interval after the
// caller has extended it by half of the last printed digit. A normal interval of ±3.1 deviations
// would reject nothing where errors are near 0.
Interval CentralMeans(absl::Span<const double> runs, int64_t count, uint64_t seed);

// Returns Wilson's 95 % interval for the probability of an event that occurred `successes` times in
// `draws` draws. REQUIRES: 0 <= successes <= draws, draws >= 1.
Interval ShareInterval(int64_t successes, int64_t draws);

// Returns the least-squares slope of ln y over ln x. REQUIRES: x and y have the same size, which is
// at least two, and all values are > 0.
double LogLogSlope(absl::Span<const double> x, absl::Span<const double> y);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_STATISTICS_H_
