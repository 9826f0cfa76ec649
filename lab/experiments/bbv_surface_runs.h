// Runs of Table 1 of Balcan, Blum, Vempala 2006.
#ifndef PHIMAP_LAB_EXPERIMENTS_BBV_SURFACE_RUNS_H_
#define PHIMAP_LAB_EXPERIMENTS_BBV_SURFACE_RUNS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/experiment.h"
#include "lab/experiments/bbv_data.h"
#include "lab/experiments/bbv_methods.h"
#include "lab/joint_chi_square.h"

namespace phimap::lab {

inline constexpr double kBbvDeviation = 0.2;
inline constexpr int64_t kBbvSurfacePrintedRuns = 10;
inline constexpr double kBbvSurfaceDigit = 0.001;
inline constexpr JointPaper kBbvSurfacePaper = {.runs = kBbvSurfacePrintedRuns,
                                                .digit = kBbvSurfaceDigit};
// Seeds that belong to one row of the table.
inline constexpr int64_t kBbvSeedsOfSurface = 10'000;
// The methods whose numbers are judged.
inline constexpr std::array<BbvMethod, 3> kBbvJudged = {kBbvF1Svm, kBbvF2Svm, kBbvSvm};

// Errors of the runs of one row. BbvRuns::f2_winnow has F2 in the coordinates of the paper:
// Gram–Schmidt in the order of drawing.
struct BbvSurfaceRuns : BbvRuns {
  // Errors of Winnow on the product's F2, one vector per setting of the grid.
  std::vector<std::vector<double>> pivoted_winnow;
  // Number of independent landmarks in each run with Winnow.
  std::vector<int64_t> ranks;

  double LeastPivoted() const;
};

struct BbvSurfacePlan {
  const BbvSurface& surface;
  double deviation = kBbvDeviation;
  int64_t runs = 0;
  // Number of runs that include Winnow and the SVM without an offset.
  int64_t winnow_runs = 0;
  // Seed of the first run.
  int64_t first_seed = 0;
};

absl::StatusOr<BbvSurfaceRuns> RunSurface(const BbvSurfacePlan& plan, const Options& options);

// Returns "row 1, ellipse, unif-unif, ". `row` counts from 0.
std::string TitleOfSurface(int64_t row);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_SURFACE_RUNS_H_
