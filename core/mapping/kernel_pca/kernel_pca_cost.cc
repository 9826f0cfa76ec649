// Cost of the builder of kernel_pca.h.
#include <algorithm>

#include "core/kernel/kernel_work.h"
#include "core/mapping/kernel_pca/kernel_pca.h"

namespace phimap {
namespace {

constexpr int64_t kDouble = sizeof(double);
// Number of products of the iteration: more if many components are wanted, whose eigenvalues are
// close to each other.
constexpr double kForecastProducts = 40;
constexpr double kForecastOfMany = 120;

// The steps of the builder, one after the other.
struct PcaWork {
  Work gram;
  Work vectors;
  // Cost of measuring the randomization's error.
  Work loss;
};

PcaWork WorkOfPca(int64_t landmarks, int64_t columns, const ValueWork& value,
                  const KernelPcaTask& pca) {
  const double rows = static_cast<double>(landmarks);
  const double vectors = static_cast<double>(PcaVectors(pca.components, landmarks));
  const double kept = 1 / pca.gram.sparsify;
  const Work block =
      WorkOfKernelBlock(1, TiledTriangle(landmarks), static_cast<double>(columns), value);
  PcaWork work{.gram = block, .vectors = {}, .loss = {}};
  work.gram.elements += rows * rows;
  const double products = 16 * vectors < rows ? kForecastProducts : kForecastOfMany;
  work.vectors.product_flops = products * vectors * (2 * rows * kept + 8 * vectors) * rows;
  // LAPACK does half of it in products of matrices and vectors, which take twice as long.
  if (PcaByLapack(pca, landmarks)) work.vectors.product_flops = 18 * rows * rows * rows;
  if (!pca.gram.any()) return work;
  // An entry that is kept costs ten times as much as one that is computed in tiles; drawing a sign
  // costs about the same.
  work.gram.elements += (10 * kept + (pca.gram.quantise ? 10 * kept : 0)) * rows * rows / 2;
  // The loss takes all of K once more, and the steps of Lanczos.
  work.loss = block;
  work.loss.product_flops += 2 * static_cast<double>(GramErrorSteps(landmarks)) * rows * rows;
  return work;
}

// The Gram matrix, or what stands for it.
int64_t GramBytes(int64_t m, const KernelPcaTask& pca) {
  // LAPACK gets a copy.
  if (!pca.gram.any()) return kDouble * m * m * (m <= kMaxLapackLandmarks ? 2 : 1);
  const double entries = 0.5 * static_cast<double>(m) * static_cast<double>(m) / pca.gram.sparsify;
  // Columns and values of half of the entries and their mirror images; and K in float32.
  return static_cast<int64_t>(12 * 1.1 * entries) + m * m / 8 + 4 * m * m;
}

// While the Gram matrix is computed, each thread has a tile of it, or the rows that its entries are
// kept for. While the matrix is used in products, the vectors are side by side, or each thread has
// some of its rows.
int64_t ScratchBytes(const LandmarkShape& shape, const KernelPcaTask& pca) {
  constexpr int64_t kWideRowBytes = 128;
  const int64_t m = shape.landmarks;
  const int64_t tiles = std::min<int64_t>(shape.threads, (m + 63) / 64);
  const int64_t tile = kDouble * 256 * m;
  if (!pca.gram.any()) return tile * std::min<int64_t>(shape.threads, (m + 255) / 256);
  return tiles * std::max(tile, kDouble * m * (shape.columns + 1)) + kWideRowBytes * m;
}

}  // namespace

KernelPcaSteps StepsOfKernelPca(const LandmarkTask& task, const KernelPcaTask& pca) {
  const int64_t p = task.landmarks.cols();
  // A given matrix has no values to compute.
  const bool at_hand = task.remote != nullptr;
  const PcaWork work =
      WorkOfPca(task.count(), p, at_hand ? ValueWork() : WorkOfValue(task.kernel, p), pca);
  const double gram = at_hand ? 0 : work.gram.weight();
  const double vectors = work.vectors.weight();
  const double all = gram + vectors + work.loss.weight();
  return {.gram = gram / all, .vectors = (gram + vectors) / all};
}

MappingCost CostOfKernelPca(const LandmarkShape& shape, const KernelPcaTask& pca) {
  const int64_t m = shape.landmarks;
  const int64_t block = PcaVectors(shape.dimensions, m);
  const PcaWork work = WorkOfPca(m, shape.columns, shape.value, pca);
  MappingCost cost;
  cost.work = work.gram + work.vectors + work.loss;
  cost.plan_numbers = m * (shape.columns + shape.dimensions) + (pca.centred ? m : 0);
  cost.output_columns = shape.dimensions;
  cost.row.product_flops = 2 * static_cast<double>(m) *
                           (shape.value.products * static_cast<double>(shape.columns) +
                            static_cast<double>(shape.dimensions));
  cost.row.elements = static_cast<double>(m) * shape.value.elements;
  // A weight that is stored without the zeros beside it takes its column too.
  const int64_t indices = pca.rounding > 0 ? 8 * m * (shape.dimensions + 1) : 0;
  cost.kept_bytes = PlanPairBytes(shape.serving_type, cost.plan_numbers) + indices;
  // The vectors with their images; weights and plans at last.
  cost.build_bytes =
      GramBytes(m, pca) + kDouble * m * shape.columns +
      std::max({ScratchBytes(shape, pca), 6 * kDouble * block * m,
                kDouble * (block + 2 * shape.dimensions + shape.columns) * m + cost.kept_bytes});
  return cost;
}

}  // namespace phimap
