// Theorem 5 of Achlioptas, McSherry and Schölkopf at the scale that the theorem gives.
#ifndef PHIMAP_LAB_EXPERIMENTS_AMS_THEOREM5_H_
#define PHIMAP_LAB_EXPERIMENTS_AMS_THEOREM5_H_

#include "absl/status/status.h"
#include "lab/experiment.h"
#include "lab/results.h"

namespace phimap::lab {

// Adds the table "theorem5" and its verdicts.
absl::Status MeasureTheorem5(const Options& options, Results& results);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_THEOREM5_H_
