// Which rows become landmarks: the policies, applied to what was kept of a stream.
#ifndef PHIMAP_CORE_MAPPING_LANDMARK_CHOICE_H_
#define PHIMAP_CORE_MAPPING_LANDMARK_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/landmark/reservoir.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"
#include "core/mapping/mapping_spec.h"
#include "core/plan/plan.h"

namespace phimap {

struct LandmarkChoiceTask {
  const MappingSpec& mapping;
  uint64_t seed = 0;
  // All parameters resolved.
  const KernelExpression& kernel;
  // Standardisation, or nothing.
  const InputStage& input;
  const Reservoir& reservoir;
  // Its slots that may become landmarks.
  const std::vector<int64_t>& pool;
  // Whether the input stage may have a shift.
  bool shifts = true;
  // The first rows of the stream, under policy `given`.
  ConstMatrixView<double> given;
  // How many threads may work at the moment.
  absl::FunctionRef<int()> threads;
};

struct LandmarkChoice {
  // As they came, before the input stage.
  Matrix<double> rows;
  // rpcholesky: tr(K − K̂)/tr(K) over the pool, K̂ of the chosen rows.
  std::optional<double> pool_trace_residual;
};

// Errors: as UniformLandmarks and ChooseRandomPivots. `checkpoint` is called under rpcholesky
// alone; the others take no time worth reporting.
absl::StatusOr<LandmarkChoice> ChooseLandmarks(const LandmarkChoiceTask& task,
                                               Checkpoint checkpoint);

// Makes the mean of `rows` the stage's shift. Distances keep more digits about it; only for kernels
// that do not see a shift.
void CentreOn(ConstMatrixView<double> rows, InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_LANDMARK_CHOICE_H_
