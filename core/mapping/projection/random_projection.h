// Johnson–Lindenstrauss projections: their random matrices, and the mapping x ↦ R·x.
#ifndef PHIMAP_CORE_MAPPING_PROJECTION_RANDOM_PROJECTION_H_
#define PHIMAP_CORE_MAPPING_PROJECTION_RANDOM_PROJECTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"
#include "core/mapping/builder/plan_pair.h"
#include "core/mapping/spec/mapping_cost.h"
#include "core/mapping/spec/mapping_spec.h"
#include "core/random/random_stream.h"

namespace phimap {

struct ProjectionTask {
  ProjectionKind kind = ProjectionKind::kGaussian;
  int64_t dimensions = 0;
  uint64_t seed = 0;
  // Number of independent projections of each row; their outputs are concatenated.
  int64_t blocks = 1;
};

// Fills `out` with independent entries of mean 0 and variance scale². Element (i, j) is drawn at
// index i·cols + j and multiplied by `scale`:
//   kGaussian  N(0, 1), from StreamId::kProjection
//   kSign      a fair coin ±1, from StreamId::kSignProjection
//   kSparse    √3·{+1 with probability 1/6, 0 with 2/3, −1 with 1/6}, from
//              StreamId::kSparseProjection (Achlioptas 2003)
// REQUIRES: not kOrthonormal, whose entries are not independent. Cost: 20 to 30 ns per entry.
void FillProjection(ProjectionKind kind, uint64_t seed, double scale, MatrixView<double> out);

// Fills `out` with orthonormal rows from the uniform (Haar) distribution. Element (i, j) starts as
// normal number first + i·cols + j of StreamId::kOrthonormalRows; then three Cholesky
// factorizations of the Gram matrix make the rows orthonormal. The result is Haar because the
// construction commutes with every rotation of the columns. Hence it does not matter that the rows
// are in the order of the pivots.
//
// Shapes:   out k×n, k <= n.
// Accuracy: |Q Qᵀ − I| at most about n·2⁻⁵³ in each entry.
// Errors:   whatever `checkpoint` returns. Cost: 3k²n multiplications, 8k² + 8kn bytes. Calls
//           BLAS.
absl::Status FillOrthonormalRows(uint64_t seed, uint64_t first, MatrixView<double> out,
                                 Checkpoint checkpoint);

// Builds x ↦ R·x, where R is dimensions×p and scaled so that E‖Rx‖² = factor·‖x‖²: entries of
// FillProjection over √dimensions, or orthonormal rows times √(p/dimensions). `factor` > 0 is that
// of the kernel factor·xᵀy. With several blocks it builds x ↦ (R_1·x, …, R_L·x). Each block is
// scaled as above, and all are drawn as rows of one matrix of dimensions·blocks rows. Orthonormal
// rows are orthonormal within a block and independent of other blocks. REQUIRES: dimensions <= p if
// orthonormal.
absl::StatusOr<PlanPair> BuildRandomProjection(const ServedAs& as, double factor,
                                               const ProjectionTask& task, Checkpoint checkpoint);

// Returns the cost of drawing one entry, in units of one rbf value (Work::elements).
double ElementsOfEntry(ProjectionKind kind);

// Return the work of FillOrthonormalRows for k×n, and the memory that it needs besides its rows.
Work WorkOfOrthonormalRows(int64_t k, int64_t n);
int64_t BytesOfOrthonormalRows(int64_t k, int64_t n);

struct ProjectionShape {
  ProjectionKind kind = ProjectionKind::kGaussian;
  int64_t dimensions = 0;
  int64_t blocks = 1;
  // Number of columns after the input stage.
  int64_t columns = 0;
  FloatType serving_type = FloatType::kFloat32;
};

// Returns cost and result sizes of BuildRandomProjection.
MappingCost CostOfRandomProjection(const ProjectionShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_PROJECTION_RANDOM_PROJECTION_H_
