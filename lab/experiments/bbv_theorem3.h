// The part of the experiment bbv_theorems on F3.
#ifndef PHIMAP_LAB_EXPERIMENTS_BBV_THEOREM3_H_
#define PHIMAP_LAB_EXPERIMENTS_BBV_THEOREM3_H_

#include "absl/status/status.h"
#include "lab/experiment.h"
#include "lab/experiments/margin_distributions.h"

namespace phimap::lab {

// Adds the table "projections" and the verdicts on Theorem 3. REQUIRES: `sphere` is Sphere(). Uses
// Seed(500,000) and up.
absl::Status RunTheorem3(const MarginDistribution& sphere, const Options& options,
                         Results& results);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_THEOREM3_H_
