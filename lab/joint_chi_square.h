// A joint test of a table: whether all cells together agree with the printed means.
#ifndef PHIMAP_LAB_JOINT_CHI_SQUARE_H_
#define PHIMAP_LAB_JOINT_CHI_SQUARE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace phimap::lab {

// The cells of one row of a table. Run i of every cell is of the same data, so cells of a row
// depend on each other; rows do not.
struct JointRow {
  // One vector of errors per cell, all of the same size.
  std::vector<absl::Span<const double>> runs;
  // What the paper prints in each cell: a mean of `JointPaper::runs` runs.
  std::vector<double> printed;
};

// How the numbers of a table were printed.
struct JointPaper {
  int64_t runs = 0;
  // Unit of the last digit: .001 for three digits.
  double digit = 0;
};

struct JointTest {
  int64_t cells = 0;
  // Σ (printed − mean)²/(variance/runs + digit²/12) over the cells; the last term is the variance
  // of rounding.
  double chi_square = 0;
  // Median of the statistic if the paper's runs are like ours.
  double median = 0;
  // Probability of a statistic at least as large, if the paper's runs are like ours.
  double p = 0;
};

// Tests all cells of the rows together. The statistic is a χ² over the cells, but its law is no χ²
// law, since cells of a row depend on each other and small errors are not normal. So its law comes
// from 20,000 tables, whose rows are means of runs that are drawn with replacement from ours, all
// cells of a row alike, and are rounded as printed. REQUIRES: at least one row and cell, and a run
// in each cell.
JointTest TestJointly(const std::vector<JointRow>& rows, const JointPaper& paper, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_JOINT_CHI_SQUARE_H_
