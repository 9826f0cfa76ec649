// Costs of the draws and of the builder of random_projection.h.
#include <algorithm>

#include "core/linalg/pivoted_cholesky.h"
#include "core/mapping/projection/random_projection.h"

namespace phimap {
namespace {

// Number of factorizations that FillOrthonormalRows makes.
constexpr int kPasses = 3;

}  // namespace

// Drawing a normal number takes 30 ns, a coin or a die 20 ns; an rbf value takes less than 4 ns.
double ElementsOfEntry(ProjectionKind kind) {
  switch (kind) {
    case ProjectionKind::kGaussian:
    case ProjectionKind::kOrthonormal:
      return 8;
    case ProjectionKind::kSign:
    case ProjectionKind::kSparse:
      return 5;
  }
  return 0;
}

Work WorkOfOrthonormalRows(int64_t k, int64_t n) {
  const double rows = static_cast<double>(k);
  const double columns = static_cast<double>(n);
  Work work{.elements = ElementsOfEntry(ProjectionKind::kOrthonormal) * rows * columns};
  for (int pass = 0; pass < kPasses; ++pass) {
    // Gram matrix, factorization, triangular solve, and reordering the rows by pivots.
    work.product_flops += rows * (rows + 1) * columns + rows * rows * columns;
    work += WorkOfFactorPivoted(k, k);
    work.elements += rows * columns;
  }
  return work;
}

int64_t BytesOfOrthonormalRows(int64_t k, int64_t n) { return kDoubleBytes * k * (k + n); }

MappingCost CostOfRandomProjection(const ProjectionShape& shape) {
  const int64_t outputs = shape.dimensions * shape.blocks;
  const int64_t numbers = outputs * shape.columns;
  const double entries = static_cast<double>(numbers);
  const bool orthonormal = shape.kind == ProjectionKind::kOrthonormal;
  MappingCost cost{.plan_numbers = numbers, .output_columns = outputs};
  cost.row.product_flops = 2 * entries;
  if (!orthonormal) cost.work.elements = ElementsOfEntry(shape.kind) * entries;
  for (int64_t block = 0; orthonormal && block < shape.blocks; ++block) {
    cost.work += WorkOfOrthonormalRows(shape.dimensions, shape.columns);
  }
  cost.work.elements += 2 * entries;  // rounded into both plans
  cost.kept_bytes = PlanPairBytes(shape.serving_type, numbers);
  // The matrix in float64, plus the larger of two: the scratch memory of FillOrthonormalRows, or
  // the plans.
  const int64_t making =
      orthonormal ? BytesOfOrthonormalRows(shape.dimensions, shape.columns) : int64_t{0};
  cost.build_bytes = kDoubleBytes * numbers + std::max(making, cost.kept_bytes);
  return cost;
}

}  // namespace phimap
