// policy=rpcholesky: rows of the pool by randomly pivoted Cholesky.
#include <algorithm>
#include <utility>

#include "core/landmark/landmark_policy.h"
#include "core/landmark/rpcholesky.h"
#include "core/landmark/split.h"
#include "core/plan/plan.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Returns the size of a default pool, reduced so that the pool's factor stays within
// kMaxDefaultFactorBytes.
int64_t PoolOfPivots(int64_t landmarks, int64_t rows) {
  return std::max(landmarks, std::min(rows, kMaxDefaultFactorBytes / 8 / landmarks));
}

Work WorkOfPivots(const LandmarkPoolShape& shape) {
  return WorkOfRandomPivots(shape.rows, shape.landmarks, shape.seen_columns, shape.value);
}

int64_t BytesOfPivots(const LandmarkPoolShape& shape) {
  return RandomPivotBytes(shape.rows, shape.landmarks, std::max(shape.columns, shape.seen_columns));
}

absl::StatusOr<LandmarkChoice> ChooseByPivots(const LandmarkChoiceTask& task,
                                              Checkpoint checkpoint) {
  Matrix<double> pool = task.reservoir.Gather(task.pool);
  InputStage input = CopyOf(task.input);
  if (task.shifts && task.kernel.IsTranslationInvariant()) {
    CentreOn(std::as_const(pool).view(), input);
  }
  pool = AfterInputStage(input, std::as_const(pool).view());
  PHIMAP_ASSIGN_OR_RETURN(
      const RandomPivots pivots,
      ChooseRandomPivots({.kernel = KernelProgram::Compile(task.kernel),
                          .pool = std::as_const(pool).view(),
                          .landmarks = task.landmarks,
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

extern const LandmarkPolicy kRpCholeskyPolicy;
constinit const LandmarkPolicy kRpCholeskyPolicy = {
    .name = "rpcholesky",
    .line =
        "randomly pivoted Cholesky: prefers rows that earlier landmarks explain least; a smaller "
        "residual",
    .no_remote = "rpcholesky would need kernel values of the whole pool",
    .needs_definite_kernel = true,
    .copies_pool = true,
    .theorem =
        "Chen, Epperly, Tropp, Webber 2022, Theorem 5.1: of the kernel's trace over the pool, d "
        "landmarks leave on average at most (1 + ε) times the share η that the best r dimensions "
        "leave, if d ≥ r/ε + r ln(1/(εη)). The theorems about margins speak of uniform landmarks, "
        "not of these",
    .theorem_is_of_pool = true,
    .default_pool = PoolOfPivots,
    .work = WorkOfPivots,
    .bytes = BytesOfPivots,
    .choose = ChooseByPivots,
};

}  // namespace phimap
