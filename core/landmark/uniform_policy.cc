// policy=uniform: rows of the pool, drawn uniformly.
#include "core/landmark/landmark_policies.h"
#include "core/landmark/uniform_landmarks.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::StatusOr<LandmarkChoice> ChooseUniform(const LandmarkChoiceTask& task, Checkpoint) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<int64_t> slots,
                          UniformLandmarks(task.pool, task.landmarks, task.seed));
  return LandmarkChoice{task.reservoir.Gather(slots), std::nullopt};
}

}  // namespace

extern const LandmarkPolicy kUniformPolicy;
constinit const LandmarkPolicy kUniformPolicy = {
    .name = "uniform",
    .line = "rows drawn uniformly, without replacement; the margin theorems hold for these only",
    .carries_margin_theorems = true,
    .choose = ChooseUniform,
};

}  // namespace phimap
