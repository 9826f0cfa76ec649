// An experiment of a paper, as the laboratory repeats it.
#ifndef PHIMAP_LAB_EXPERIMENT_H_
#define PHIMAP_LAB_EXPERIMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lab/results.h"

namespace phimap::lab {

struct Options {
  // Fewer repetitions, so that all experiments take under 90 seconds together; every verdict is
  // still passed, at its own tolerance.
  bool quick = false;
  // Seed of every random choice. Run i of an experiment draws with Seed(i).
  uint64_t seed = 1;
  // Folder of letter.csv and the other data sets.
  std::string data_dir = "lab/data";

  uint64_t Seed(int64_t run) const { return seed * 1'000'000 + static_cast<uint64_t>(run); }
  // Repetitions: so many of a full run, so many of a quick one.
  int64_t Runs(int64_t full, int64_t few) const { return quick ? few : full; }
};

// An experiment computes by the core's public functions or by a server: none has a formula of its
// own for anything that phimap computes.
struct Experiment {
  // Name of its folder of results, and on the command line: "bbv_table1".
  const char* name;
  // "BBV", "BS", "AMS", "SH", "CO" or "phimap", as docs/maths.md names them.
  const char* paper;
  // "Table 1", "figure 2 a–d", …
  const char* item;
  // A few words: what it is about.
  const char* title;
  // Claim of the paper.
  const char* claim;
  // Procedure of this run, and how it fills the gaps that the paper leaves.
  const char* protocol;
  // Leaves tables and verdicts in `results`. An error is a bug or a file that is missing, and ends
  // the run; a paper that does not agree is a verdict.
  absl::Status (*run)(const Options& options, Results& results);
};

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENT_H_
