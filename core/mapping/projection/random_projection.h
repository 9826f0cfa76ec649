// Johnson–Lindenstrauss projections: their matrices, and the mapping that is nothing else.
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
  // Number of such projections of a row, one after the other.
  int64_t blocks = 1;
};

// Independent entries of mean 0 and variance scale²; element (i, j) is drawn at index i·cols + j:
//   kGaussian  N(0, 1), of StreamId::kProjection
//   kSign      a fair coin ±1, of StreamId::kSignProjection
//   kSparse    √3·{+1 with probability 1/6, 0 with 2/3, −1 with 1/6}, of
//              StreamId::kSparseProjection (Achlioptas 2003)
// REQUIRES: not kOrthonormal, whose entries are not independent. Cost: 20 to 30 ns an entry.
void FillProjection(ProjectionKind kind, uint64_t seed, double scale, MatrixView<double> out);

// Orthonormal rows, uniform among all such (Haar): normal numbers `first` … of
// StreamId::kOrthonormalRows, element (i, j) at first + i·cols + j, made orthonormal by three
// Cholesky factorizations of their Gram matrix. The result is Haar, because it commutes with every
// rotation of the columns; so the order of the rows, which is that of the pivots, does not matter.
//
// Shapes:   out k×n, k <= n.
// Accuracy: |Q Qᵀ − I| at most about n·2⁻⁵³ in each entry.
// Errors:   whatever `checkpoint` returns. Cost: 3k²n multiplications, 8k² + 8kn bytes. Calls
//           BLAS.
absl::Status FillOrthonormalRows(uint64_t seed, uint64_t first, MatrixView<double> out,
                                 Checkpoint checkpoint);

// x ↦ R·x, R dimensions×p, scaled so that E‖Rx‖² = factor·‖x‖²: entries of FillProjection over
// √dimensions, or orthonormal rows times √(p/dimensions). `factor` > 0 is that of the kernel
// factor·xᵀy. With several blocks x ↦ (R_1·x, …, R_L·x), each scaled like this and drawn as rows of
// one matrix of dimensions·blocks rows; orthonormal rows are orthonormal within a block, and
// independent of other blocks. REQUIRES: dimensions <= p if orthonormal.
absl::StatusOr<PlanPair> BuildRandomProjection(const ServedAs& as, double factor,
                                               const ProjectionTask& task, Checkpoint checkpoint);

// Cost of drawing one entry, counted in values of an rbf (Work::elements).
double ElementsOfEntry(ProjectionKind kind);

// Work of FillOrthonormalRows for k×n, and the memory that it holds beside its rows.
Work WorkOfOrthonormalRows(int64_t k, int64_t n);
int64_t BytesOfOrthonormalRows(int64_t k, int64_t n);

struct ProjectionShape {
  ProjectionKind kind = ProjectionKind::kGaussian;
  int64_t dimensions = 0;
  int64_t blocks = 1;
  // After the input stage.
  int64_t columns = 0;
  FloatType serving_type = FloatType::kFloat32;
};

// Cost and result sizes of BuildRandomProjection.
MappingCost CostOfRandomProjection(const ProjectionShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_PROJECTION_RANDOM_PROJECTION_H_
