// Johnson–Lindenstrauss projections: their random matrices, and the mapping x ↦ R·x.
#ifndef PHIMAP_CORE_MAPPING_PROJECTION_RANDOM_PROJECTION_H_
#define PHIMAP_CORE_MAPPING_PROJECTION_RANDOM_PROJECTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/mapping/builder_parts/plan_pair.h"
#include "core/mapping/spec/family.h"
#include "core/mapping/spec/mapping_spec.h"
#include "core/plan/plan.h"
#include "core/random/random_stream.h"

namespace phimap {

struct ProjectionTask {
  ProjectionKind kind = ProjectionKind::kGaussian;
  int64_t dimensions = 0;
  uint64_t seed = 0;
  // Number of independent projections of each row; their outputs are concatenated.
  int64_t blocks = 1;
};

// Fills `out` with independent random entries of mean 0 and variance scale². Entry (i, j) is the
// number at index i·cols + j of a stream, multiplied by `scale`. The kind determines stream and
// distribution:
//   kGaussian  N(0, 1), from StreamId::kProjection
//   kSign      1 or −1 with equal probability, from StreamId::kSignProjection
//   kSparse    √3 with probability 1/6, −√3 with 1/6 and 0 with 2/3, from
//              StreamId::kSparseProjection (Achlioptas 2003)
// Cost: 20 to 30 ns per entry. REQUIRES: the kind is not kOrthonormal, whose entries are not
// independent.
void FillProjection(ProjectionKind kind, uint64_t seed, double scale, MatrixView<double> out);

// Fills `out` with orthonormal rows from the uniform (Haar) distribution. First fills it with
// normal numbers: entry (i, j) is number first + i·cols + j of StreamId::kOrthonormalRows. Then
// makes the rows orthonormal by three Cholesky factorizations of their Gram matrix.
//
// The result is Haar distributed, because a rotation of the columns before the construction has the
// same effect as one after it. For the same reason, the reordering of the rows by the pivots does
// not change the distribution.
//
// Shapes:   out k×n, k <= n.
// Accuracy: |Q Qᵀ − I| is at most about n·2⁻⁵³ in each entry, where Q is the result.
// Errors:   whatever `checkpoint` returns.
// Cost:     3k²n multiplications, 8k² + 8kn bytes. Calls BLAS.
absl::Status FillOrthonormalRows(uint64_t seed, uint64_t first, MatrixView<double> out,
                                 Checkpoint checkpoint);

// Builds the mapping x ↦ R·x with a random matrix R of dimensions×p entries. Here p is the number
// of columns, and `factor` > 0 is the factor of the kernel factor·xᵀy. R is scaled so that E‖Rx‖² =
// factor·‖x‖²: it has the entries of FillProjection divided by √dimensions, or orthonormal rows
// times √(p/dimensions), in both cases times √factor.
//
// With L blocks, builds x ↦ (R_1·x, …, R_L·x). Each R_i is scaled like R. All blocks are drawn as
// the rows of one matrix of dimensions·L rows. If they are orthonormal, rows of the same block are
// orthonormal to each other, and different blocks are independent.
//
// REQUIRES: dimensions <= p if orthonormal.
absl::StatusOr<PlanPair> BuildRandomProjection(const ServedAs& as, double factor,
                                               const ProjectionTask& task, Checkpoint checkpoint);

// Returns the cost of drawing one entry, in units of one rbf value (Work::elements).
double ElementsOfEntry(ProjectionKind kind);

// Return the work of FillOrthonormalRows for a k×n matrix, and the memory that it needs in addition
// to the matrix.
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

// Projected kernel evaluation: the kernel is evaluated on a few random sums and differences of the
// columns instead of the columns themselves (Achlioptas, McSherry, Schölkopf 2001, section 5).
//
// Adds a random projection to `input`. Its matrix is columns × dimensions, and each entry is 1 or
// −1 with equal probability: entry (i, j) is number i·dimensions + j of StreamId::kInputSigns. Also
// multiplies the input's scale by 1/√dimensions, which preserves squared lengths on average.
//
// REQUIRES: `input` has no projection, 1 <= dimensions <= kMaxPlanDimension.
void ProjectInput(int64_t dimensions, uint64_t seed, InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_PROJECTION_RANDOM_PROJECTION_H_
