// Counts false alarms of the test for drift on real data, where nothing has changed.
#ifndef PHIMAP_TESTS_CORE_DRIFT_FALSE_ALARMS_H_
#define PHIMAP_TESTS_CORE_DRIFT_FALSE_ALARMS_H_

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/drift/sequential_test.h"
#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/core/drift/resampled_rows.h"

namespace phimap::testing {

inline constexpr int64_t kRuns = 1000;
inline constexpr double kAlpha = 0.05;
// T of a run. It covers two restarts, and is short so that there can be many runs: the threshold is
// that of a promise for this many rows.
inline constexpr int64_t kRows = 2000;
inline constexpr int64_t kRestartRows = 1000;
inline constexpr int64_t kReferenceRows = 1000;

struct Alarms {
  // Runs whose evidence reached the threshold, and runs that reached a tenth of it.
  int64_t at_threshold = 0;
  int64_t at_a_tenth = 0;
};

// Each run draws its own reference rows and served rows from the data set, with replacement.
inline Alarms CountAlarms(const BuiltData& data, uint64_t seed) {
  Alarms alarms;
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  for (int64_t run = 0; run < kRuns; ++run) {
    const DriftReference reference = data.Redrawn(kReferenceRows, random);
    SequentialTest test(reference, {.false_alarms = kAlpha,
                                    .rows = static_cast<double>(kRows),
                                    .restart_rows = kRestartRows,
                                    .seed = seed + static_cast<uint64_t>(run)});
    double largest = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      test.Add(data.scores.row(data.Draw(random)));
      // Evidence counts for two restarts, so it is enough to look before each.
      if ((i + 1) % kRestartRows == 0) largest = std::max(largest, test.largest_evidence());
    }
    const double log_threshold = std::log(test.threshold());
    alarms.at_threshold += largest >= 1 ? 1 : 0;
    alarms.at_a_tenth += largest >= (log_threshold - std::log(10.0)) / log_threshold ? 1 : 0;
  }
  return alarms;
}

// Returns the largest number of alarms that 1,000 runs have with a probability over 1e-6, if each
// has one with probability α.
inline int64_t MostAlarms() {
  double tail = 1;
  int64_t k = 0;
  for (double term = std::pow(1 - kAlpha, kRuns); tail > 1e-6; ++k) {
    tail -= term;
    term *= static_cast<double>(kRuns - k) / static_cast<double>(k + 1) * kAlpha / (1 - kAlpha);
  }
  return k;
}

inline void ExpectFewAlarms(const BuiltData& data, uint64_t seed) {
  const Alarms alarms = CountAlarms(data, seed);
  std::printf("%d scores: %d alarms in %d runs, %d at a tenth of the threshold\n",
              static_cast<int>(data.reference->scores.count()),
              static_cast<int>(alarms.at_threshold), static_cast<int>(kRuns),
              static_cast<int>(alarms.at_a_tenth));
  EXPECT_LE(alarms.at_threshold, MostAlarms());
  EXPECT_LT(MostAlarms(), 90);
  // The control: a threshold of a tenth breaks the promise.
  EXPECT_GT(alarms.at_a_tenth, MostAlarms());
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_DRIFT_FALSE_ALARMS_H_
