// Judgements of the columns of Winnow in Table 1 of Balcan, Blum, Vempala 2006.
#ifndef PHIMAP_LAB_EXPERIMENTS_BBV_WINNOW_H_
#define PHIMAP_LAB_EXPERIMENTS_BBV_WINNOW_H_

#include <vector>

#include "lab/experiment.h"
#include "lab/experiments/bbv_surface_runs.h"
#include "lab/results.h"

namespace phimap::lab {

// Judges F1 + Winnow and F2 + Winnow, F2 in the paper's coordinates: their order, and whether the
// printed numbers come out at one setting of the grid.
void JudgeWinnow(const std::vector<BbvSurfaceRuns>& rows, const Options& options, Results& results);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_WINNOW_H_
