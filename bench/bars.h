// Phimap's promised speeds, each beside the measurement of a run.
#ifndef PHIMAP_BENCH_BARS_H_
#define PHIMAP_BENCH_BARS_H_

#include <optional>
#include <string>
#include <vector>

#include "bench/run_results.h"

namespace phimap::bench {

struct Bar {
  std::string what;
  // "<=" or ">=".
  bool at_most = true;
  // Both in `unit`; nullopt if the run has not measured it.
  std::optional<double> limit;
  std::optional<double> measured;
  std::string unit;

  // nullopt if it cannot be said.
  std::optional<bool> Met() const;
};

// All bars, in the order of the layers from the engine outwards. Pure.
std::vector<Bar> Bars(const RunResults& results);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_BARS_H_
