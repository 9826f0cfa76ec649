// An experiment of a paper, which the laboratory repeats.
#ifndef PHIMAP_LAB_EXPERIMENT_H_
#define PHIMAP_LAB_EXPERIMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lab/results.h"

namespace phimap::lab {

struct Options {
  // Makes fewer repetitions, so that all experiments together take under 90 seconds. Every verdict
  // is still given, with a tolerance for this number of repetitions.
  bool quick = false;
  // Seed of all random choices. Run i of an experiment draws with Seed(i).
  uint64_t seed = 1;
  // The cells.csv of an earlier run of `verdicts`, which are judged anew in place of being
  // measured, which takes an hour; empty to measure.
  std::string cells;
  // Folder of letter.csv and the other data sets.
  std::string data_dir = "lab/data";

  uint64_t Seed(int64_t run) const { return seed * 1'000'000 + static_cast<uint64_t>(run); }
  // Returns the number of repetitions: `full` in a full run, `few` in a quick run.
  int64_t Runs(int64_t full, int64_t few) const { return quick ? few : full; }
};

// An experiment computes with the core's public functions or with a server. It has no formulas of
// its own for anything that phimap computes.
struct Experiment {
  // Name of the experiment on the command line, and of the folder of its results: "bbv_table1".
  const char* name;
  // "BBV", "BS", "AMS", "SH", "CO" or "phimap", as docs/maths.md names them.
  const char* paper;
  // "Table 1", "figure 2 a–d", …
  const char* item;
  // The topic, in a few words.
  const char* title;
  // Claim of the paper.
  const char* claim;
  // Procedure of this experiment, and how it fills the gaps that the paper leaves.
  const char* protocol;
  // Adds tables and verdicts to `results`. An error means a bug or a missing file, and ends the
  // run. Disagreement with the paper is a verdict, not an error.
  absl::Status (*run)(const Options& options, Results& results);
};

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENT_H_
