#include "core/mapping/projection/random_projection.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/linalg/blas.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Returns the rows in the order of the pivots: row i of the result is row pivots[i] of `rows`.
Matrix<double> InOrder(ConstMatrixView<double> rows, const std::vector<int64_t>& pivots) {
  Matrix<double> out = Matrix<double>::Uninit(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    std::copy_n(rows.row(pivots[i]), rows.cols(), out.row(i));
  }
  return out;
}

// One pass of Cholesky orthonormalization. First puts `rows` into the order of the pivots, then
// replaces `rows` by L⁻¹·rows. L is the Cholesky factor: L·Lᵀ = rows·rowsᵀ + shift·I.
absl::Status Orthogonalize(double shift, MatrixView<double> rows, Checkpoint checkpoint) {
  const int64_t k = rows.rows();
  Matrix<double> gram = Matrix<double>::Uninit(k, k);
  SymmetricRankUpdate(1, rows, 0, gram.view());
  for (int64_t i = 0; i < k; ++i) gram(i, i) += shift;
  PHIMAP_ASSIGN_OR_RETURN(const PivotedCholesky cholesky,
                          FactorPivoted(gram.view(), {.is_proven = true}, checkpoint));
  PHIMAP_CHECK(cholesky.rank() == k);
  const Matrix<double> ordered = InOrder(rows, cholesky.pivots);
  for (int64_t i = 0; i < k; ++i) std::copy_n(ordered.row(i), rows.cols(), rows.row(i));
  SolveLowerTriangle(gram.view(), rows);
  return absl::OkStatus();
}

// Returns the shift for the first factorization of a k×n matrix of normal numbers, k <= n. With it,
// the factorization succeeds even if the rows are dependent. The formula is that of shifted
// Cholesky QR (Fukaya, Kannan, Nakatsukasa, Yamamoto, Yanagisawa 2020): 11(nk + k(k+1))·u·‖rows‖₂²,
// where u = 2⁻⁵³ and ‖rows‖₂² is estimated as 4n.
//
// Accuracy for n = 2,048: the first pass leaves a condition number of about 10⁴, the second an
// error of 10⁻⁸, and the third only rounding.
double FirstShift(int64_t k, int64_t n) {
  const double rows = static_cast<double>(k);
  const double columns = static_cast<double>(n);
  return 11 * (columns * rows + rows * (rows + 1)) * std::ldexp(1.0, -53) * 4 * columns;
}

double SparseEntry(uint64_t die) {
  if (die > 1) return 0;
  return die == 0 ? std::sqrt(3.0) : -std::sqrt(3.0);
}

template <typename Draw>
void Fill(MatrixView<double> out, double scale, Draw draw) {
  for (int64_t i = 0; i < out.rows(); ++i) {
    for (int64_t j = 0; j < out.cols(); ++j) {
      out(i, j) = draw(static_cast<uint64_t>(i * out.cols() + j)) * scale;
    }
  }
}

}  // namespace

void FillProjection(ProjectionKind kind, uint64_t seed, double scale, MatrixView<double> out) {
  switch (kind) {
    case ProjectionKind::kGaussian: {
      const RandomStream stream(seed, StreamId::kProjection);
      return Fill(out, scale, [&](uint64_t index) { return stream.Normal(index); });
    }
    case ProjectionKind::kSign: {
      const RandomStream stream(seed, StreamId::kSignProjection);
      return Fill(out, scale,
                  [&](uint64_t index) { return stream.UniformBelow(index, 2) == 0 ? 1.0 : -1.0; });
    }
    case ProjectionKind::kSparse: {
      const RandomStream stream(seed, StreamId::kSparseProjection);
      return Fill(out, scale,
                  [&](uint64_t index) { return SparseEntry(stream.UniformBelow(index, 6)); });
    }
    case ProjectionKind::kOrthonormal:
      break;
  }
  PHIMAP_CHECK(false);
}

absl::Status FillOrthonormalRows(uint64_t seed, uint64_t first, MatrixView<double> out,
                                 Checkpoint checkpoint) {
  PHIMAP_CHECK(out.rows() <= out.cols());
  const RandomStream stream(seed, StreamId::kOrthonormalRows);
  Fill(out, 1, [&](uint64_t index) { return stream.Normal(first + index); });
  for (int pass = 0; pass < 3; ++pass) {
    const double shift = pass == 0 ? FirstShift(out.rows(), out.cols()) : 0;
    PHIMAP_RETURN_IF_ERROR(
        Orthogonalize(shift, out, [&](double f) { return checkpoint((pass + f) / 3); }));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanPair> BuildRandomProjection(const ServedAs& as, double factor,
                                               const ProjectionTask& task, Checkpoint checkpoint) {
  PHIMAP_CHECK(factor > 0 && task.dimensions >= 1 && task.blocks >= 1);
  const int64_t columns = as.input.output_columns();
  const double dimensions = static_cast<double>(task.dimensions);
  StageNumbers stages;
  stages.rows = Matrix<double>::Uninit(task.dimensions * task.blocks, columns);
  if (task.kind != ProjectionKind::kOrthonormal) {
    FillProjection(task.kind, task.seed, std::sqrt(factor / dimensions), stages.rows.view());
  } else {
    for (int64_t block = 0; block < task.blocks; ++block) {
      const int64_t begin = block * task.dimensions;
      PHIMAP_RETURN_IF_ERROR(FillOrthonormalRows(
          task.seed, static_cast<uint64_t>(begin * columns),
          stages.rows.view().Rows(begin, task.dimensions), [&](double f) {
            return checkpoint((static_cast<double>(block) + f) / static_cast<double>(task.blocks));
          }));
    }
    const double scale = std::sqrt(factor * static_cast<double>(columns) / dimensions);
    for (int64_t i = 0; i < stages.rows.size(); ++i) stages.rows.data()[i] *= scale;
  }
  PHIMAP_RETURN_IF_ERROR(checkpoint(1));
  PlanPair plans;
  PHIMAP_RETURN_IF_ERROR(EmitPlans(as, stages, plans));
  return plans;
}

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

void ProjectInput(int64_t dimensions, uint64_t seed, InputStage& input) {
  PHIMAP_CHECK(input.projection.empty() && 1 <= dimensions && dimensions <= kMaxPlanDimension);
  if (input.scale.empty()) input.scale.assign(static_cast<size_t>(input.columns), 1.0);
  for (double& scale : input.scale) scale /= std::sqrt(static_cast<double>(dimensions));
  const RandomStream coins(seed, StreamId::kInputSigns);
  input.projection = Matrix<double>::Uninit(input.columns, dimensions);
  for (int64_t i = 0; i < input.projection.size(); ++i) {
    input.projection.data()[i] = coins.UniformBelow(static_cast<uint64_t>(i), 2) == 0 ? 1 : -1;
  }
}

}  // namespace phimap
