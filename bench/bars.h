// The limits of speed and memory ("bars") that phimap promises, each with its measurement in one
// run of bench/run.
#ifndef PHIMAP_BENCH_BARS_H_
#define PHIMAP_BENCH_BARS_H_

#include <optional>
#include <string>
#include <vector>

#include "bench/run_results.h"

namespace phimap::bench {

struct Bar {
  std::string what;
  // True if `limit` is an upper limit, false if it is a lower limit.
  bool at_most = true;
  // Both in `unit`; nullopt if the run lacks the measurements from which the number is computed.
  std::optional<double> limit;
  std::optional<double> measured;
  std::string unit;

  // Returns whether the limit is met; nullopt if the limit or the measurement is missing.
  std::optional<bool> Met() const;
};

// Returns all bars, in the order of the layers from the engine outwards. Pure.
std::vector<Bar> Bars(const RunResults& results);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_BARS_H_
