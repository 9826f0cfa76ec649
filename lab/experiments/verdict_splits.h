// Measures what ridge regression loses on features against the exact kernel, split by split.
#ifndef PHIMAP_LAB_EXPERIMENTS_VERDICT_SPLITS_H_
#define PHIMAP_LAB_EXPERIMENTS_VERDICT_SPLITS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/certificate/verdict.h"
#include "lab/experiments/verdict_data.h"

namespace phimap::lab {

// The measures of a certificate that are compared as judges of a version.
struct VerdictMeasures {
  // Distances of smoothers at λ = 1, 10⁻² and 10⁻⁴.
  double smoother_1 = 0;
  double smoother_2 = 0;
  double smoother_4 = 0;
  double gram_error = 0;
  double centred_gram_error = 0;
  double self_error_median = 0;
  double self_error_quantile_95 = 0;
  // 1 if the features are for inner products and few rows carry these (FewRowsCarry), otherwise 0.
  double few_rows_carry = 0;
  // The distance for rows that are left out of the training, at λ = 1.
  double left_out = 0;
};

// A split of a cell: the shares of test rows that ridge regression misclassifies.
struct VerdictSplit {
  double exact_error = 0;
  double error = 0;
  VerdictMeasures measures;
};

// All splits of one cell, by their numbers from 0.
using CellSplits = std::map<int64_t, VerdictSplit>;

// How many splits a cell gets: at least `least`, then more until the 95 % half-width of the mean
// loss is at most `half_width`, but at most `most`.
struct SplitRule {
  int64_t least = 0;
  int64_t most = 0;
  double half_width = 0;
};

// Mean of 100·(error − exact_error) over splits, and its 95 % half-width by Student's distribution
// (infinite for fewer than two splits).
struct CellLoss {
  double mean = 0;
  double half_width = 0;
};
CellLoss LossOf(const CellSplits& splits);

// Measures the cells on as many threads as there are cores. Each split is one build of the cell's
// mapping. Splits that `file` has are taken from it, and new ones are appended to it as they are
// measured, so that an interrupted run is continued; an empty name keeps nothing. Errors of builds
// and of the file end the run.
absl::StatusOr<std::map<std::string, CellSplits>> MeasureCells(
    const std::vector<VerdictData>& data, const std::vector<VerdictCell>& cells,
    const SplitRule& rule, const std::string& file);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_VERDICT_SPLITS_H_
