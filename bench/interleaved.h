// Timing several ways to do one thing, in turns.
#ifndef PHIMAP_BENCH_INTERLEAVED_H_
#define PHIMAP_BENCH_INTERLEAVED_H_

#include <functional>
#include <string>
#include <vector>

namespace phimap::bench {

struct Contender {
  std::string name;
  std::function<void()> run;
  // Filled in: microseconds of one run, the median of the rounds.
  double median_us = 0;
};

struct TimingOptions {
  int rounds = 7;
  // Minimum time that a contender runs in each round.
  double round_seconds = 0.02;
};

// The middle number, or the mean of the two in the middle. REQUIRES: not empty.
double Median(std::vector<double> values);

// Times all contenders. In each round every one runs, each round beginning with another, so that
// what disturbs the machine for a while disturbs all; and once untimed before, because the one
// before it had the caches.
void TimeInterleaved(const TimingOptions& options, std::vector<Contender>& contenders);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_INTERLEAVED_H_
