// Cost of the builder of kernel_pca.h.
#include <algorithm>

#include "core/kernel/kernel_work.h"
#include "core/mapping/kernel_pca/kernel_pca.h"

namespace phimap {
namespace {

// Assumed number of products. The iteration needs more if many components are wanted, because
// their eigenvalues are close to each other.
constexpr double kForecastProducts = 40;
constexpr double kForecastOfMany = 120;

// Work of each step of the builder, in order.
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
  // LAPACK spends half of its work in products of a matrix with a vector, which take twice as long
  // as products of matrices.
  if (PcaByLapack(pca, landmarks)) work.vectors.product_flops = 18 * rows * rows * rows;
  if (!pca.gram.any()) return work;
  // A kept entry costs ten times an entry computed in tiles. Drawing a sign costs about the same.
  work.gram.elements += (10 * kept + (pca.gram.quantise ? 10 * kept : 0)) * rows * rows / 2;
  // Measuring the error computes all of K again, and the steps of Lanczos.
  work.loss = block;
  work.loss.product_flops += 2 * static_cast<double>(GramErrorSteps(landmarks)) * rows * rows;
  return work;
}

// Returns the bytes of the Gram matrix or its replacement.
int64_t GramBytes(int64_t m, const KernelPcaTask& pca) {
  // LAPACK works on a copy.
  if (!pca.gram.any()) return kDoubleBytes * m * m * (m <= kMaxLapackLandmarks ? 2 : 1);
  const double entries = 0.5 * static_cast<double>(m) * static_cast<double>(m) / pca.gram.sparsify;
  // The kept entries below the diagonal and their mirror images (12 bytes per entry, and 10 % to be
  // safe), the matrix in bits, and K in float32.
  return static_cast<int64_t>(12 * 1.1 * entries) + m * m / 8 + 4 * m * m;
}

// Returns the bytes of scratch memory. The memory is used in two steps. While the Gram matrix is
// computed, each thread holds a tile of the matrix, or the rows whose entries are kept. During
// products, the vectors are held side by side, or each thread holds some rows of the matrix.
int64_t ScratchBytes(const LandmarkShape& shape, const KernelPcaTask& pca) {
  constexpr int64_t kWideRowBytes = 128;
  const int64_t m = shape.landmarks;
  const int64_t tiles = std::min<int64_t>(shape.threads, (m + 63) / 64);
  const int64_t tile = kDoubleBytes * 256 * m;
  if (!pca.gram.any()) return tile * std::min<int64_t>(shape.threads, (m + 255) / 256);
  return tiles * std::max(tile, kDoubleBytes * m * (shape.columns + 1)) + kWideRowBytes * m;
}

}  // namespace

KernelPcaSteps StepsOfKernelPca(const LandmarkTask& task, const KernelPcaTask& pca) {
  const int64_t p = task.landmarks.cols();
  // The Gram matrix of a remote kernel need not be computed.
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
  // A sparse matrix of weights also stores the column of each weight.
  const int64_t indices = pca.rounding > 0 ? 8 * m * (shape.dimensions + 1) : 0;
  cost.kept_bytes = PlanPairBytes(shape.serving_type, cost.plan_numbers) + indices;
  // The vectors and their products with the matrix; at the end, the weights and the plans.
  cost.build_bytes = GramBytes(m, pca) + kDoubleBytes * m * shape.columns +
                     std::max({ScratchBytes(shape, pca), 6 * kDoubleBytes * block * m,
                               kDoubleBytes * (block + 2 * shape.dimensions + shape.columns) * m +
                                   cost.kept_bytes});
  return cost;
}

}  // namespace phimap
