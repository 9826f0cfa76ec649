// Numbers of repeated runs.
#ifndef PHIMAP_LAB_STATISTICS_H_
#define PHIMAP_LAB_STATISTICS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace phimap::lab {

// REQUIRES: one number at least.
double Mean(absl::Span<const double> numbers);
// √(Σ(x − mean)²/(n − 1)); 0 of one number.
double Deviation(absl::Span<const double> numbers);
// Deviation/√n.
double StandardError(absl::Span<const double> numbers);
double Median(absl::Span<const double> numbers);

struct Interval {
  double low = 0;
  double high = 0;

  bool Contains(double x) const { return low <= x && x <= high; }
};

// Interval that contains the mean of `count` runs, drawn with replacement from `runs`, with
// probability 99.8 %: the quantiles at .001 and .999 of 100,000 such means. A number that was
// printed as a mean of `count` runs agrees where it lies between these, half of its last printed
// digit added by the caller. A normal interval of ±3.1 deviations would reject nothing where errors
// are near 0.
Interval CentralMeans(absl::Span<const double> runs, int64_t count, uint64_t seed);

// Wilson's interval, 95 %, of a probability that was met so many times in so many draws. REQUIRES:
// 0 <= successes <= draws, draws >= 1.
Interval ShareInterval(int64_t successes, int64_t draws);

// The slope of ln y over ln x by least squares. REQUIRES: as many y as x, two at least, all > 0.
double LogLogSlope(absl::Span<const double> x, absl::Span<const double> y);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_STATISTICS_H_
