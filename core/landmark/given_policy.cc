// policy=given: the first rows of the stream, in their order.
#include "core/landmark/landmark_policy.h"

namespace phimap {
namespace {

absl::StatusOr<LandmarkChoice> TakeGiven(const LandmarkChoiceTask& task, Checkpoint) {
  return LandmarkChoice{Converted<double, double>(task.given), std::nullopt};
}

}  // namespace

extern const LandmarkPolicy kGivenPolicy;
constinit const LandmarkPolicy kGivenPolicy = {
    .name = "given",
    .line = "the first rows of the stream, which are used only as landmarks",
    .takes_first_rows = true,
    .no_count_rule = "given takes as many rows as there are landmarks",
    .theorem = "none: the theorems speak of uniform landmarks, and these were given",
    .choose = TakeGiven,
};

}  // namespace phimap
