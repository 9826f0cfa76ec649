// The cost of mapping rows by kernels of projected rows.
#ifndef PHIMAP_LAB_EXPERIMENTS_AMS_PROJECTED_COST_H_
#define PHIMAP_LAB_EXPERIMENTS_AMS_PROJECTED_COST_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"
#include "lab/experiment.h"
#include "lab/results.h"

namespace phimap::lab {

inline constexpr int64_t kWideColumns = 1024;

// Returns rows of independent normal numbers. Column k, counted from 1, has the deviation 1/√k.
Matrix<double> WideRows(int64_t count, uint64_t seed);

// Builds F1 and F2 on wide rows with and without input_dimensions. Adds the table "costs" and its
// verdicts.
absl::Status MeasureProjectedCost(const Options& options, Results& results);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_PROJECTED_COST_H_
