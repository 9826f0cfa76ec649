#include "core/mapping/kernel_pca.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/blas.h"
#include "core/linalg/orthogonal_iteration.h"
#include "core/random/random_stream.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kOversampling = 8;

// The upper triangle from the lower one, in square blocks, so that both stay in the cache.
void Mirror(MatrixView<double> gram) {
  constexpr int64_t kBlock = 64;
  const int64_t m = gram.rows();
  for (int64_t bi = 0; bi < m; bi += kBlock) {
    for (int64_t bj = 0; bj <= bi; bj += kBlock) {
      for (int64_t i = bi; i < std::min(m, bi + kBlock); ++i) {
        for (int64_t j = bj; j < std::min(i, bj + kBlock); ++j) gram(j, i) = gram(i, j);
      }
    }
  }
}

std::vector<double> RowMeans(ConstMatrixView<double> gram) {
  std::vector<double> means;
  for (int64_t i = 0; i < gram.rows(); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < gram.cols(); ++j) sum += gram(i, j);
    means.push_back(sum / static_cast<double>(gram.cols()));
  }
  return means;
}

// K_ij − mean_i − mean_j + mean.
void Centre(const std::vector<double>& means, MatrixView<double> gram) {
  const double mean =
      std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(means.size());
  for (int64_t i = 0; i < gram.rows(); ++i) {
    for (int64_t j = 0; j < gram.cols(); ++j) gram(i, j) += mean - means[i] - means[j];
  }
}

Matrix<double> StartVectors(uint64_t seed, int64_t count, int64_t m) {
  const RandomStream normals(seed, StreamId::kStartVectors);
  Matrix<double> start = Matrix<double>::Uninit(std::min(count + kOversampling, m), m);
  for (int64_t i = 0; i < start.size(); ++i) {
    start.data()[i] = normals.Normal(static_cast<uint64_t>(i));
  }
  return start;
}

// Column n is α_n/√λ_n. Of centred ones the sum, which is 0 but for what the iteration left, is
// taken off, so that a shift of all kernel values is not seen.
Matrix<double> Weights(const Eigenpairs& pairs, int64_t kept, bool centred) {
  const int64_t m = pairs.vectors.cols();
  Matrix<double> w = Matrix<double>::Uninit(m, kept);
  for (int64_t n = 0; n < kept; ++n) {
    const double* alpha = pairs.vectors.row(n);
    double mean = 0;
    for (int64_t i = 0; centred && i < m; ++i) mean += alpha[i] / static_cast<double>(m);
    const double scale = 1 / std::sqrt(pairs.values[n]);
    for (int64_t i = 0; i < m; ++i) w(i, n) = (alpha[i] - mean) * scale;
  }
  return w;
}

// The Gram matrix, both triangles, and the largest of its diagonal.
absl::Status FillGram(const KernelProgram& program, ConstMatrixView<double> rows,
                      MatrixView<double> gram, Checkpoint checkpoint, double& largest) {
  PHIMAP_RETURN_IF_ERROR(KernelGram(program, rows, gram, checkpoint));
  Mirror(gram);
  for (int64_t i = 0; i < gram.rows(); ++i) largest = std::max(largest, gram(i, i));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelPca> BuildKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                         Checkpoint checkpoint) {
  const int64_t m = task.landmarks.rows();
  PHIMAP_CHECK(1 <= pca.components && pca.components <= m);
  StageNumbers stages;
  PHIMAP_ASSIGN_OR_RETURN(stages.rows, ServedLandmarks(task));
  stages.program = KernelProgram::Compile(task.kernel);
  Matrix<double> gram = Matrix<double>::Uninit(m, m);
  double largest = 0;
  PHIMAP_RETURN_IF_ERROR(FillGram(
      stages.program, std::as_const(stages.rows).view(), gram.view(),
      [&](double f) { return checkpoint(0.4 * f); }, largest));
  if (pca.centred) {
    stages.centre = RowMeans(std::as_const(gram).view());
    Centre(stages.centre, gram.view());
  }
  KernelPca mapping;
  for (int64_t i = 0; i < m; ++i) mapping.trace += gram(i, i);
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out) {
    Multiply(1, v, std::as_const(gram).view(), 0, out);
    return absl::OkStatus();
  };
  PHIMAP_ASSIGN_OR_RETURN(const Eigenpairs pairs,
                          IterateOrthogonally({.count = pca.components}, multiply,
                                              StartVectors(pca.seed, pca.components, m),
                                              [&](double f) { return checkpoint(0.4 + 0.6 * f); }));
  const double u = std::ldexp(1.0, task.serving_type == FloatType::kFloat32 ? -24 : -53);
  // What weights of the serving type can carry, and what rounding leaves of a zero.
  mapping.tolerance =
      static_cast<double>(m) * std::max(u * largest, 0x1p-53 * std::abs(pairs.values[0]));
  for (const double value : pairs.values) {
    if (value > mapping.tolerance) mapping.eigenvalues.push_back(value);
  }
  // By falling modulus: what is dropped stands behind what is kept, but for a kernel that is not
  // positive semidefinite, which no caller brings here.
  const int64_t kept = static_cast<int64_t>(mapping.eigenvalues.size());
  if (kept == 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "ZERO_KERNEL", "kernel",
                     pca.centred ? "all landmarks are one point in φ-space: nothing varies"
                                 : "K(x, x) is 0 on every landmark: there is no direction");
  }
  mapping.residual = pairs.residual;
  mapping.sweeps = pairs.sweeps;
  stages.dense = Weights(pairs, kept, pca.centred);
  PHIMAP_RETURN_IF_ERROR(
      EmitPlans({.input = task.input, .serving_type = task.serving_type}, stages, mapping));
  PHIMAP_RETURN_IF_ERROR(checkpoint(1));
  return mapping;
}

MappingCost CostOfKernelPca(const LandmarkShape& shape, bool centred) {
  constexpr int64_t kDouble = sizeof(double);
  constexpr double kSweeps = 40;
  const int64_t m = shape.landmarks;
  const int64_t block = std::min(shape.dimensions + kOversampling, m);
  const double rows = static_cast<double>(m);
  const double vectors = static_cast<double>(block);
  MappingCost cost;
  cost.work = WorkOfKernelBlock(1, TiledTriangle(m), static_cast<double>(shape.columns),
                                shape.elements_of_value);
  cost.work.product_flops += kSweeps * vectors * (2 * rows + 8 * vectors) * rows;
  cost.work.elements += (centred ? 3 : 1) * rows * rows;
  cost.plan_numbers = m * (shape.columns + shape.dimensions) + (centred ? m : 0);
  cost.output_columns = shape.dimensions;
  cost.row.product_flops = 2 * static_cast<double>(m * (shape.columns + shape.dimensions));
  cost.row.elements = rows * shape.elements_of_value;
  cost.kept_bytes = PlanPairBytes(shape.serving_type, cost.plan_numbers);
  // Gram matrix, a tile of it or the vectors with their images; weights and plans at last.
  cost.build_bytes = kDouble * m * (m + shape.columns) +
                     std::max({kDouble * 256 * m, 4 * kDouble * block * m,
                               kDouble * (block + shape.dimensions) * m + cost.kept_bytes});
  return cost;
}

}  // namespace phimap
