// The landmark policy "rpcholesky": randomly pivoted Cholesky.
#ifndef PHIMAP_CORE_LANDMARK_RPCHOLESKY_H_
#define PHIMAP_CORE_LANDMARK_RPCHOLESKY_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

struct RandomPivots {
  // Rows of the pool, different ones, in the order in which they were chosen.
  std::vector<int64_t> rows;
  // tr K over the pool, and tr(K − K̂), the part that the chosen rows leave unexplained.
  double trace = 0;
  double residual_trace = 0;
};

struct RandomPivotTask {
  KernelProgram kernel;
  // N×p, after the input stage.
  ConstMatrixView<double> pool;
  // Number of rows to choose.
  int64_t landmarks = 0;
  uint64_t seed = 0;
  // Whether the kernel is positive semidefinite by construction and so never refused.
  bool is_proven = false;
  // Number of threads that may work at the moment; asked before each block. The result does not
  // depend on it.
  absl::FunctionRef<int()> threads;
};

// Each row is chosen with probability proportional to the part of K(x, x) that the rows chosen
// before do not explain. If nothing is left, because the kernel has a lower rank on the pool, the
// rest are drawn uniformly from the rows not chosen. REQUIRES 1 <= landmarks <= pool.rows().
//
// Method:  blocks of proposals with rejection, which chooses with exactly the probabilities of one
//          row at a time (Epperly, Tropp, Webber, "Embrace rejection", 2024, after Chen, Epperly,
//          Tropp, Webber, "Randomly pivoted Cholesky", 2022). The pool is worked on in tiles of
//          512 rows.
//          The rest of a row counts as nothing at max(4·d·2⁻⁵³, 4β) of its own K(x, x), β the
//          values' error (ValueErrorOf); so does a K(x, x) that is rounding alone (kZeroRoundings).
// Errors:  FAILED_PRECONDITION (KERNEL_NOT_POSITIVE_SEMIDEFINITE) when a witness shows that an
//          unproven kernel is indefinite (definiteness_witness.h); INVALID_ARGUMENT
//          (VALUE_NOT_FINITE); whatever `checkpoint` returns, between tiles.
// Bits:    a function of kernel, pool, landmarks and seed (per BLAS core).
// Cost:    an N×d kernel block and N·d²/2 multiplications; RandomPivotBytes of memory.
absl::StatusOr<RandomPivots> ChooseRandomPivots(const RandomPivotTask& task, Checkpoint checkpoint);

// Bytes that choosing `landmarks` of `pool_rows` rows of `columns` numbers takes, the pool itself
// left out.
int64_t RandomPivotBytes(int64_t pool_rows, int64_t landmarks, int64_t columns);

// Work of the choice, if half of all proposals are rejected.
Work WorkOfRandomPivots(int64_t pool_rows, int64_t landmarks, int64_t columns,
                        const ValueWork& value);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_RPCHOLESKY_H_
