// Judgements of Table 1 of Balcan, Blum, Vempala 2006 as a whole, and the control that shows that
// they can reject.
#ifndef PHIMAP_LAB_EXPERIMENTS_BBV_CONTROL_H_
#define PHIMAP_LAB_EXPERIMENTS_BBV_CONTROL_H_

#include <vector>

#include "absl/status/status.h"
#include "lab/experiment.h"
#include "lab/experiments/bbv_surface_runs.h"
#include "lab/results.h"

namespace phimap::lab {

// Judges whether the SVM cells of all rows together agree with what is printed, and whether the
// same test rejects other tables.
void JudgeJointly(const std::vector<BbvSurfaceRuns>& rows, const Options& options,
                  Results& results);

// Judges whether rows 4 and 8, which print no error of any SVM, reject Gaussian points with the
// variance of footnote 5. The control has runs of its own.
absl::Status JudgeControl(const std::vector<BbvSurfaceRuns>& rows, const Options& options,
                          Results& results);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_CONTROL_H_
