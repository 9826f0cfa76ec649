// Kernel PCA: coordinates along the leading principal axes of the landmarks in φ-space.
#ifndef PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_H_
#define PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/tiles.h"
#include "core/mapping/builder/plan_pair.h"
#include "core/mapping/kernel_pca/randomized_gram.h"
#include "core/mapping/landmarks/landmark_mapping.h"
#include "core/mapping/spec/mapping_cost.h"

namespace phimap {

struct KernelPcaTask {
  // At most as many as there are landmarks.
  int64_t components = 0;
  // Whether axes go through the landmarks' mean in φ-space, or through the origin.
  bool centred = true;
  uint64_t seed = 0;
  // Replacement for the Gram matrix. In float32, as without randomization if `single_gram`.
  GramRandomization gram;
  bool single_gram = false;
  // Scale of randomized rounding; 0 leaves the weights unchanged.
  double rounding = 0;
};

// Error of the Gram matrix.
struct GramLoss {
  GramLaw law;
  GramError error;
  // Components n, counted from 1, that are apart from their neighbours by so much more than the
  // bound of the error that each is one of K's own (AMS Theorem 4 with c = 2).
  std::vector<int64_t> apart;
};

// Error of randomized rounding of the weights.
struct RoundingLoss {
  double scale = 0;
  // Weights that are not 0, of all there were.
  int64_t weights = 0;
  int64_t all_weights = 0;
};

// The plans, and the findings of the iteration.
struct KernelPca : PlanPair {
  // Eigenvalues of the kept components in decreasing order: of K(S, S), centred or not, or of K̂ if
  // it replaces K(S, S).
  std::vector<double> eigenvalues;
  // The sum of all eigenvalues.
  double trace = 0;
  // Centred: the mean of all K(x_i, x_j). If K̂ replaces K it is K's if that was measured.
  double gram_mean = 0;
  // Eigenvalues up to it are dropped: m·max(u·max K_ii, 2⁻⁵³·λ_1), u = 2⁻²⁴ or 2⁻⁵³ by the serving
  // type or, if it is larger, that of values of a remote kernel; 2⁻²⁴ for 2⁻⁵³ where the Gram
  // matrix is in float32.
  double tolerance = 0;
  // Residual of the iteration, relative to the largest eigenvalue; and its number of products with
  // the matrix.
  double residual = 0;
  int64_t products = 0;
  // β of K̂ + βI, the iterated matrix; 0 if no shift was needed.
  double shift = 0;
  // Landmarks that any component has a weight of; and which they are, in the order of the plan.
  int64_t landmarks = 0;
  std::vector<int64_t> used;
  std::optional<GramLoss> gram;
  std::optional<RoundingLoss> rounding;
};

// f_n(x) = λ_n^{-1/2} Σ_i α_iⁿ·k(x_i, x), α unit eigenvectors of K = K(S, S) by orthogonal
// iteration (AMS section 2; 8 vectors more than components, from numbers i·m + j of
// StreamId::kStartVectors); the largest entry of each α is positive. Centred, K is replaced by
// (I − 11ᵀ/m) K (I − 11ᵀ/m), and f_n(x) = λ_n^{-1/2} Σ_i α_iⁿ·(k(x_i, x) − mean_j K_ij): α sums to
// 0, so that the other terms of the centred kernel drop out. K is that of the rounded rows that are
// served.
//
// Randomized (pca.gram), K̂ replaces K, in the means too. It has negative eigenvalues, and the
// iteration converges by modulus: where a negative one is among those it finds, K̂ + βI is
// iterated, −β an estimate of the lowest by Lanczos, less its residual.
//
// Rounded (pca.rounding = s), α_i with |α_i| < 1/s becomes sign(α_i)/s with probability s·|α_i|,
// and 0 otherwise (uniform number n·m + i of StreamId::kExpansionRounding; AMS section 4), before
// λ^{-1/2}. Landmarks without any weight are dropped: they cost nothing when the mapping is served.
//
// Errors: FAILED_PRECONDITION (KERNEL_ZERO) when no eigenvalue is above the tolerance,
//         (COMPONENT_ROUNDED_AWAY) when a component has no weight left, or as IterateOrthogonally
//         and RandomizedGram. Cost: the kernel block, and 2m²(components + 8) flops a sweep; 8m²
//         bytes. Randomized, RandomizedGram's and as many flops as it holds entries. Equal bits
//         for any number of threads. Calls BLAS.
absl::StatusOr<KernelPca> BuildKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                         const TileControl& control);

// Builds the mapping and measures the error of the randomized Gram matrix, which takes all of K.
absl::StatusOr<KernelPca> BuildMeasuredKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                                 const TileControl& control);

// Shares of the reported progress at which the Gram matrix is done, and its eigenvectors are.
struct KernelPcaSteps {
  double gram = 0;
  double vectors = 0;
};
KernelPcaSteps StepsOfKernelPca(const LandmarkTask& task, const KernelPcaTask& pca);

// Warnings for a user who asked for so many components.
std::vector<std::string> WarningsOf(const KernelPca& pca, int64_t components);

// Vectors that are iterated: eight more than components, if there are as many landmarks.
int64_t PcaVectors(int64_t components, int64_t landmarks);

// Whether LAPACK finds the components in one call, which cannot be cancelled and takes some seconds
// at most. It does so if the Gram matrix is small, in float64, and the components are a large part
// of it. In a small matrix it also takes over if the iteration has not converged after
// kProductsBeforeLapack products.
bool PcaByLapack(const KernelPcaTask& pca, int64_t landmarks);
inline constexpr int64_t kMaxLapackLandmarks = 2048;
inline constexpr int64_t kProductsBeforeLapack = 80;

// Cost and result sizes of BuildMeasuredKernelPca, at 40 products: their number depends on the
// spectrum. shape.dimensions are the components.
MappingCost CostOfKernelPca(const LandmarkShape& shape, const KernelPcaTask& pca);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_H_
