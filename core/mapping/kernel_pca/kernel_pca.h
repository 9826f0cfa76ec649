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
  // At most the number of landmarks.
  int64_t components = 0;
  // Whether the axes go through the landmarks' mean in φ-space instead of the origin.
  bool centred = true;
  uint64_t seed = 0;
  // Randomization of the Gram matrix, which is then in float32. An exact Gram matrix is in float32
  // only if `single_gram`.
  GramRandomization gram;
  bool single_gram = false;
  // Scale of randomized rounding; 0: weights are not rounded.
  double rounding = 0;
};

// Error of the Gram matrix.
struct GramLoss {
  GramLaw law;
  GramError error;
  // Components n, counted from 1, that match a component of K itself, because their eigenvalues
  // are far enough from both neighbours compared with the error bound (AMS Theorem 4 with c = 2).
  std::vector<int64_t> apart;
};

// Error of randomized rounding of the weights.
struct RoundingLoss {
  double scale = 0;
  // Number of weights that are not 0, and number of all weights.
  int64_t weights = 0;
  int64_t all_weights = 0;
};

// The plans, and the findings of the iteration.
struct KernelPca : PlanPair {
  // Eigenvalues of the kept components, in descending order: of K(S, S), centred or not, or of K̂
  // if that replaces K(S, S).
  std::vector<double> eigenvalues;
  // The sum of all eigenvalues.
  double trace = 0;
  // Mean of all K(x_i, x_j) if centred. For a randomized matrix, the mean of K̂, or that of K if
  // the error was measured.
  double gram_mean = 0;
  // Eigenvalues up to this are dropped: m·max(u·max K_ii, v·λ_1). u is the unit round-off of the
  // serving type (2⁻²⁴ or 2⁻⁵³), or that of a remote kernel's values if larger. v is 2⁻²⁴ if the
  // Gram matrix is in float32, else 2⁻⁵³. λ_1 includes `shift`.
  double tolerance = 0;
  // Residual of the iteration relative to the largest eigenvalue, and number of products with the
  // matrix.
  double residual = 0;
  int64_t products = 0;
  // β if K̂ + βI was iterated; 0 if no shift was needed.
  double shift = 0;
  // Number of landmarks with a weight other than 0 in some component, and their indices in the
  // order of the plan.
  int64_t landmarks = 0;
  std::vector<int64_t> used;
  std::optional<GramLoss> gram;
  std::optional<RoundingLoss> rounding;
};

// Builds f_n(x) = λ_n^{-1/2} Σ_i α_iⁿ·k(x_i, x), where αⁿ are unit eigenvectors of K = K(S, S) on
// the rounded rows that are served. They come from orthogonal iteration (AMS section 2) of 8
// vectors more than components, which start as numbers i·m + j of StreamId::kStartVectors, or from
// LAPACK (PcaByLapack). The largest entry of each αⁿ is positive.
//
// If centred, (I − 11ᵀ/m) K (I − 11ᵀ/m) replaces K, and f_n(x) = λ_n^{-1/2} Σ_i α_iⁿ·(k(x_i, x) −
// mean_j K_ij). The other terms of the centred kernel cancel, because αⁿ sums to 0.
//
// If randomized (pca.gram), K̂ replaces K, in the means too. K̂ can have negative eigenvalues, and
// the iteration finds eigenvalues of largest absolute value. If it finds a negative one, K̂ + βI is
// iterated instead, where −β is an estimate of the lowest eigenvalue by Lanczos, less its residual.
//
// If rounded (pca.rounding = s), α_i with |α_i| < 1/s becomes sign(α_i)/s with probability s·|α_i|,
// and 0 otherwise (uniform number n·m + i of StreamId::kExpansionRounding; AMS section 4), before
// the factor λ^{-1/2}. Landmarks without a weight are dropped, which makes serving cheaper.
//
// Errors: FAILED_PRECONDITION (KERNEL_ZERO) if no eigenvalue is above the tolerance,
//         (COMPONENT_ROUNDED_AWAY) if a component has no weight left,
//         (KERNEL_NOT_POSITIVE_SEMIDEFINITE) for a negative eigenvalue of an exact Gram matrix;
//         the errors of IterateOrthogonally and RandomizedGram.
// Cost:   the kernel block, and 2m²(components + 8) flops per product; 8m² bytes. If randomized,
//         the cost of RandomizedGram, and flops in proportion to its entries.
// The bits do not depend on the number of threads. Calls BLAS.
absl::StatusOr<KernelPca> BuildKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                         const TileControl& control);

// Like BuildKernelPca, but also measures the error of a randomized Gram matrix, which computes all
// of K.
absl::StatusOr<KernelPca> BuildMeasuredKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                                 const TileControl& control);

// Shares of the reported progress at which the Gram matrix and its eigenvectors are done.
struct KernelPcaSteps {
  double gram = 0;
  double vectors = 0;
};
KernelPcaSteps StepsOfKernelPca(const LandmarkTask& task, const KernelPcaTask& pca);

// Returns the warnings for a user who requested `components` components.
std::vector<std::string> WarningsOf(const KernelPca& pca, int64_t components);

// Returns the number of iterated vectors: components + 8, but at most `landmarks`.
int64_t PcaVectors(int64_t components, int64_t landmarks);

// Whether LAPACK finds the components in one call, which cannot be cancelled and takes a few
// seconds at most. True for a small Gram matrix in float64 if the components are a large part of
// its eigenvectors. For any small matrix, LAPACK also takes over if the iteration has not converged
// after kProductsBeforeLapack products.
bool PcaByLapack(const KernelPcaTask& pca, int64_t landmarks);
inline constexpr int64_t kMaxLapackLandmarks = 2048;
inline constexpr int64_t kProductsBeforeLapack = 80;

// Returns cost and result sizes of BuildMeasuredKernelPca. The number of products depends on the
// spectrum; 40 are assumed, or 120 for many components. shape.dimensions is the number of
// components.
MappingCost CostOfKernelPca(const LandmarkShape& shape, const KernelPcaTask& pca);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_H_
