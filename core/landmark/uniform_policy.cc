// policy=uniform: rows of the pool, drawn uniformly.
#include "absl/strings/str_cat.h"
#include "core/landmark/landmark_policy.h"
#include "core/landmark/uniform_landmarks.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

absl::Status TooFewRows(int64_t landmarks, int64_t rows) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kRowsTooFew, "landmarks",
      absl::StrCat("the mapping asks for ", CountOf(landmarks, "landmark"), " but only ",
                   CountOf(rows, "row"), " came to draw them from; stream at least ",
                   CountOf(landmarks, "row"), " or ask for fewer landmarks"),
      {{"expected", absl::StrCat(landmarks)}, {"actual", absl::StrCat(rows)}});
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> UniformLandmarks(absl::Span<const int64_t> pool,
                                                      int64_t landmarks, uint64_t seed) {
  PHIMAP_CHECK(landmarks >= 0);
  const int64_t rows = static_cast<int64_t>(pool.size());
  if (rows < landmarks) return TooFewRows(landmarks, rows);
  std::vector<int64_t> chosen =
      FirstOfPermutation(rows, landmarks, RandomStream(seed, StreamId::kLandmarks));
  for (int64_t& slot : chosen) slot = pool[slot];
  return chosen;
}
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
