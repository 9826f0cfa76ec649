#include "core/mapping/landmark_choice.h"

#include <algorithm>
#include <utility>

#include "core/certificate/measurement.h"
#include "core/landmark/rpcholesky.h"
#include "core/landmark/uniform_landmarks.h"
#include "core/plan/input_stage.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::StatusOr<LandmarkChoice> ChooseUniform(const LandmarkChoiceTask& task) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<int64_t> slots,
                          UniformLandmarks(task.pool, task.mapping.landmarks, task.seed));
  return LandmarkChoice{task.reservoir.Gather(slots), std::nullopt};
}

absl::StatusOr<LandmarkChoice> ChooseByPivots(const LandmarkChoiceTask& task,
                                              Checkpoint checkpoint) {
  Matrix<double> pool = task.reservoir.Gather(task.pool);
  InputStage input = CopyOf(task.input);
  if (task.shifts && task.kernel.IsTranslationInvariant())
    CentreOn(std::as_const(pool).view(), input);
  pool = AfterInputStage(input, std::as_const(pool).view());
  PHIMAP_ASSIGN_OR_RETURN(
      const RandomPivots pivots,
      ChooseRandomPivots({.kernel = KernelProgram::Compile(task.kernel),
                          .pool = std::as_const(pool).view(),
                          .landmarks = task.mapping.landmarks,
                          .seed = task.seed,
                          .is_proven = task.kernel.IsProvenPositiveSemidefinite(),
                          .threads = task.threads},
                         checkpoint));
  std::vector<int64_t> slots = pivots.rows;
  for (int64_t& slot : slots) slot = task.pool[slot];
  LandmarkChoice choice;
  choice.rows = task.reservoir.Gather(slots);
  if (pivots.trace > 0) choice.pool_trace_residual = pivots.residual_trace / pivots.trace;
  return choice;
}

}  // namespace

absl::StatusOr<LandmarkChoice> ChooseLandmarks(const LandmarkChoiceTask& task,
                                               Checkpoint checkpoint) {
  switch (task.mapping.policy) {
    case LandmarkPolicy::kUniform:
      return ChooseUniform(task);
    case LandmarkPolicy::kRandomlyPivotedCholesky:
      return ChooseByPivots(task, checkpoint);
    case LandmarkPolicy::kGiven:
      break;
  }
  LandmarkChoice choice;
  choice.rows = Converted<double, double>(task.given);
  return choice;
}

void CentreOn(ConstMatrixView<double> rows, InputStage& input) {
  input.shift.assign(static_cast<size_t>(input.columns), 0.0);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    // Running means: a sum over many large rows could overflow.
    for (int64_t j = 0; j < input.columns; ++j) {
      input.shift[j] += (rows(i, j) - input.shift[j]) / static_cast<double>(i + 1);
    }
  }
}

}  // namespace phimap
