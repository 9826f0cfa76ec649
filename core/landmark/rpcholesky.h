// The landmark policy "rpcholesky": randomly pivoted Cholesky.
#ifndef PHIMAP_CORE_LANDMARK_RPCHOLESKY_H_
#define PHIMAP_CORE_LANDMARK_RPCHOLESKY_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

struct RandomPivots {
  // Distinct rows of the pool, in the order in which they were chosen.
  std::vector<int64_t> rows;
  // tr K over the pool, and the part tr(K − K̂) that the chosen rows do not explain.
  double trace = 0;
  double residual_trace = 0;
};

struct RandomPivotTask {
  KernelProgram kernel;
  // An N×p matrix, after the input stage.
  ConstMatrixView<double> pool;
  // Number of rows to choose.
  int64_t landmarks = 0;
  uint64_t seed = 0;
  // Whether the kernel is positive semidefinite by construction. Such a kernel is never refused
  // because of a negative residual.
  bool is_proven = false;
  // Returns the number of threads that may work now. Called before each block. The result does not
  // depend on it.
  absl::FunctionRef<int()> threads;
};

// Chooses `landmarks` rows of the pool, one after another. The probability of a row is proportional
// to its residual: the part of K(x, x) that the rows chosen before do not explain. If all residuals
// are 0, because the kernel has a lower rank on the pool, the rest are drawn uniformly from the
// rows not chosen. REQUIRES 1 <= landmarks <= pool.rows().
//
// Method:  rows are proposed in blocks, and some proposals are rejected. The probabilities are
//          exactly those of choosing one row at a time (Epperly, Tropp, Webber, "Embrace
//          rejection", 2024, after Chen, Epperly, Tropp, Webber, "Randomly pivoted Cholesky",
//          2022). The pool is processed in tiles of 1,024 rows.
// Zeros:   with d = landmarks, a residual counts as 0 up to max(4·d·2⁻⁵³, 4β) of the row's own K(x,
//          x), where β is the error of kernel values (ValueErrorOf). A K(x, x) that is only
//          rounding (kZeroRoundings) also counts as 0.
// Errors:  FAILED_PRECONDITION (KERNEL_NOT_POSITIVE_SEMIDEFINITE) if some K(x, x) is negative, or
//          if a witness shows that an unproven kernel is indefinite (DefinitenessWitness).
//          INVALID_ARGUMENT (VALUE_NOT_FINITE). Those of `checkpoint`, called between tiles.
// Result:  bit-for-bit repeatable. It depends only on kernel, pool, landmarks and seed, and on the
//          CPU type that OpenBLAS detects.
// Cost:    for a pool of N rows, an N×d kernel block and N·d²/2 multiplications; RandomPivotBytes
//          of memory.
absl::StatusOr<RandomPivots> ChooseRandomPivots(const RandomPivotTask& task, Checkpoint checkpoint);

// Returns the memory that choosing `landmarks` of `pool_rows` rows of `columns` numbers takes, in
// bytes, without the pool itself.
int64_t RandomPivotBytes(int64_t pool_rows, int64_t landmarks, int64_t columns);

// Returns the work of the choice, assuming that half of all proposals are rejected.
Work WorkOfRandomPivots(int64_t pool_rows, int64_t landmarks, int64_t columns,
                        const ValueWork& value);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_RPCHOLESKY_H_
