// Times several ways of doing the same work, in interleaved rounds.
#ifndef PHIMAP_BENCH_INTERLEAVED_H_
#define PHIMAP_BENCH_INTERLEAVED_H_

#include <functional>
#include <string>
#include <vector>

namespace phimap::bench {

struct Contender {
  std::string name;
  std::function<void()> run;
  // Result: microseconds of one run, as the median of the rounds.
  double median_us = 0;
};

struct TimingOptions {
  int rounds = 7;
  // Minimum time that a contender runs in each round.
  double round_seconds = 0.02;
};

// Returns the middle number, or the mean of the two in the middle. REQUIRES: `values` is not empty.
double Median(std::vector<double> values);

// Times all contenders. Every contender runs in each round, and each round begins with another
// contender, so that a temporary disturbance of the machine affects all. Before it is timed, each
// contender runs once untimed, because its predecessor filled the caches.
void TimeInterleaved(const TimingOptions& options, std::vector<Contender>& contenders);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_INTERLEAVED_H_
