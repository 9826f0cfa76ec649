// Kernel PCA: coordinates along the leading principal axes of the landmarks in φ-space.
#ifndef PHIMAP_CORE_MAPPING_KERNEL_PCA_H_
#define PHIMAP_CORE_MAPPING_KERNEL_PCA_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/checkpoint.h"
#include "core/mapping/landmark_mapping.h"
#include "core/mapping/mapping_cost.h"
#include "core/mapping/plan_pair.h"

namespace phimap {

struct KernelPcaTask {
  // At most as many as there are landmarks.
  int64_t components = 0;
  // Whether axes go through the landmarks' mean in φ-space, or through the origin.
  bool centred = true;
  uint64_t seed = 0;
};

// The plans, and what the iteration found.
struct KernelPca : PlanPair {
  // Of the components kept, falling: of K(S, S), or of it centred.
  std::vector<double> eigenvalues;
  // The sum of all eigenvalues.
  double trace = 0;
  // Eigenvalues up to it are dropped: m·max(u·max K_ii, 2⁻⁵³·λ_1), u = 2⁻²⁴ or 2⁻⁵³ by the serving
  // type.
  double tolerance = 0;
  // Of the iteration, relative to the largest eigenvalue; and its sweeps.
  double residual = 0;
  int64_t sweeps = 0;
};

// f_n(x) = λ_n^{-1/2} Σ_i α_iⁿ·k(x_i, x), α unit eigenvectors of K = K(S, S) by orthogonal
// iteration (AMS section 2; 8 vectors more than components, from numbers i·m + j of
// StreamId::kStartVectors); the largest entry of each α is positive. Centred, K is replaced by
// (I − 11ᵀ/m) K (I − 11ᵀ/m), and f_n(x) = λ_n^{-1/2} Σ_i α_iⁿ·(k(x_i, x) − mean_j K_ij): α sums to
// 0, so that the other terms of the centred kernel drop out. K is that of the rounded rows that are
// served.
//
// Errors: FAILED_PRECONDITION (ZERO_KERNEL) when no eigenvalue is above the tolerance, or as
//         IterateOrthogonally. Cost: the kernel block, and 2m²(components + 8) flops a sweep; 8m²
//         bytes. Calls BLAS.
absl::StatusOr<KernelPca> BuildKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                         Checkpoint checkpoint);

// What BuildKernelPca takes and leaves, at 40 sweeps: how many there are depends on the spectrum.
// shape.dimensions are the components.
MappingCost CostOfKernelPca(const LandmarkShape& shape, bool centred);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_H_
