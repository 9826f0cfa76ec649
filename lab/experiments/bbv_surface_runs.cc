#include "lab/experiments/bbv_surface_runs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "lab/gram_schmidt_map.h"
#include "lab/learning.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

// Adds the errors of Winnow on F2 in the paper's coordinates, and moves those on the product's F2,
// which AddRun has just added, to where they belong.
absl::Status AddOrderedWinnow(ConstMatrixView<double> landmarks, const BbvTask& task,
                              BbvSurfaceRuns& runs) {
  PHIMAP_ASSIGN_OR_RETURN(const GramSchmidtMap map, GramSchmidtMap::Make(task.kernel, landmarks));
  const Examples train{.rows = map.Map(task.train.rows.view()), .labels = task.train.labels};
  const Examples test{.rows = map.Map(task.test.rows.view()), .labels = task.test.labels};
  runs.ranks.push_back(map.rank());
  for (size_t s = 0; s < WinnowGrid().size(); ++s) {
    PHIMAP_ASSIGN_OR_RETURN(const double error, TestError(WinnowGrid()[s], train, test, task.seed));
    runs.pivoted_winnow[s].push_back(std::exchange(runs.f2_winnow[s].back(), error));
  }
  return absl::OkStatus();
}

absl::Status RunOnce(const BbvSurfacePlan& plan, int64_t run, const Options& options,
                     BbvSurfaceRuns& runs) {
  const uint64_t seed = options.Seed(plan.first_seed + run);
  const Examples drawn =
      DrawSurface(plan.surface, plan.deviation,
                  kBbvSurfaceLandmarks + kBbvSurfaceTrainRows + kBbvSurfaceTestRows, seed);
  const Examples train = Slice(drawn, kBbvSurfaceLandmarks, kBbvSurfaceTrainRows);
  const Examples test =
      Slice(drawn, kBbvSurfaceLandmarks + kBbvSurfaceTrainRows, kBbvSurfaceTestRows);
  const ConstMatrixView<double> landmarks = drawn.rows.view().Rows(0, kBbvSurfaceLandmarks);
  PHIMAP_ASSIGN_OR_RETURN(const BbvMaps maps, BuildBbvMaps(kBbvPolynomial, "uniform",
                                                           kBbvSurfaceLandmarks, landmarks, seed));
  const BbvTask task{.kernel = kBbvPolynomial, .train = train, .test = test, .seed = seed};
  const bool with_winnow = run < plan.winnow_runs;
  PHIMAP_RETURN_IF_ERROR(AddRun(maps, task, with_winnow, runs));
  return with_winnow ? AddOrderedWinnow(landmarks, task, runs) : absl::OkStatus();
}

}  // namespace

double BbvSurfaceRuns::LeastPivoted() const {
  double least = 1;
  for (const std::vector<double>& errors : pivoted_winnow) least = std::min(least, Mean(errors));
  return least;
}

absl::StatusOr<BbvSurfaceRuns> RunSurface(const BbvSurfacePlan& plan, const Options& options) {
  BbvSurfaceRuns runs;
  runs.pivoted_winnow.resize(WinnowGrid().size());
  for (int64_t run = 0; run < plan.runs; ++run) {
    PHIMAP_RETURN_IF_ERROR(RunOnce(plan, run, options, runs));
  }
  return runs;
}

std::string TitleOfSurface(int64_t row) {
  return absl::StrCat("row ", row + 1, ", ", BbvSurfaces()[row].name, ", ");
}

}  // namespace phimap::lab
