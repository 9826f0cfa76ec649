// Kernel PCA: coordinates along the leading principal axes of the landmarks in φ-space. AMS stands
// for Achlioptas, McSherry, Schölkopf 2001.
#ifndef PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_H_
#define PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/tiles.h"
#include "core/mapping/builder_parts/plan_pair.h"
#include "core/mapping/f1_f2_f3/landmark_mapping.h"
#include "core/mapping/kernel_pca/randomized_gram.h"
#include "core/mapping/spec/family.h"

namespace phimap {

struct KernelPcaTask {
  // Number of components, at most the number of landmarks.
  int64_t components = 0;
  // Whether the axes go through the landmarks' mean in φ-space. Otherwise they go through the
  // origin.
  bool centred = true;
  uint64_t seed = 0;
  // Randomization of the Gram matrix, which is then in float32. An exact Gram matrix is in float32
  // only if `single_gram`.
  GramRandomization gram;
  bool single_gram = false;
  // Parameter s of the randomized rounding of weights; 0 means that weights are not rounded.
  double rounding = 0;
};

// Error of the Gram matrix.
struct GramLoss {
  GramLaw law;
  GramError error;
  // The components of K̂, counted from 1, that are known to match a component of the exact matrix
  // K. Their eigenvalues are far from both neighbours, compared with the error bound (AMS Theorem 4
  // with c = 2).
  std::vector<int64_t> apart;
};

// Effect of the randomized rounding of weights.
struct RoundingLoss {
  double scale = 0;
  // Number of weights that are not 0, and number of all weights.
  int64_t weights = 0;
  int64_t all_weights = 0;
};

// The plans, and the findings of the iteration.
struct KernelPca : PlanPair {
  // Eigenvalues of the kept components, in descending order. They are those of K(S, S), centred or
  // not, over the landmarks S, or those of K̂ if it replaces K(S, S).
  std::vector<double> eigenvalues;
  // The sum of all eigenvalues.
  double trace = 0;
  // Mean of all K(x_i, x_j) if centred. For a randomized matrix, the mean of K̂, or that of K if
  // the error was measured.
  double gram_mean = 0;
  // Eigenvalues up to this tolerance are dropped. The tolerance is m·max(u·max K_ii, v·λ_1), with
  // these quantities:
  // - m, the number of landmarks;
  // - u, the unit round-off of the serving type (2⁻²⁴ or 2⁻⁵³), or that of a remote kernel's values
  //   if larger;
  // - K_ii, the diagonal of the Gram matrix;
  // - v, which is 2⁻²⁴ if the Gram matrix is in float32, and 2⁻⁵³ otherwise;
  // - λ_1, the largest eigenvalue, with `shift` added.
  double tolerance = 0;
  // Residual of the iteration relative to the largest eigenvalue, and number of products with the
  // matrix that the iteration took.
  double residual = 0;
  int64_t products = 0;
  // β if the iteration was run on K̂ + βI; 0 if no shift was needed.
  double shift = 0;
  // Number of landmarks that have a nonzero weight in some component. `used` has their indices, in
  // the order of the plan.
  int64_t landmarks = 0;
  std::vector<int64_t> used;
  std::optional<GramLoss> gram;
  std::optional<RoundingLoss> rounding;
};

// Builds the features of kernel PCA. Let x_1 … x_m be the m landmarks S, rounded as they are
// served, and K = K(S, S) their Gram matrix. Feature n is
//   f_n(x) = λ_n^{-1/2} Σ_i α_iⁿ·k(x_i, x)
// where k is the kernel, λ_n is eigenvalue n of K, and αⁿ is its unit eigenvector. The sign of αⁿ
// makes its entry of largest magnitude positive.
//
// Method: orthogonal iteration (AMS section 2) or LAPACK (PcaByLapack). The iteration uses 8
// vectors more than there are components. Entry j of vector i starts as number i·m + j of
// StreamId::kStartVectors.
//
// If centred, the matrix (I − 11ᵀ/m) K (I − 11ᵀ/m) replaces K, where 1 is the vector of ones. Each
// k(x_i, x) is replaced by k(x_i, x) − mean_j K_ij. The other terms of the centred kernel cancel,
// because the entries of αⁿ sum to 0.
//
// If randomized (pca.gram), a random matrix K̂ replaces K, also in the means. K̂ can have negative
// eigenvalues, but the iteration finds the eigenvalues of largest absolute value. If one of these
// is negative, the iteration runs on K̂ + βI instead. Here −β is a lower estimate of the lowest
// eigenvalue: the estimate by Lanczos minus its residual.
//
// If rounded (pca.rounding = s), the entries of αⁿ are rounded at random before the multiplication
// by λ_n^{-1/2} (AMS section 4). An entry α with |α| < 1/s becomes sign(α)/s with probability
// s·|α|, and 0 otherwise. Entry i of αⁿ uses uniform number n·m + i of
// StreamId::kExpansionRounding, with n counted from 0. Landmarks whose weights are all 0 are
// dropped, which makes serving cheaper.
//
// Errors: FAILED_PRECONDITION for one of these reasons:
// - KERNEL_ZERO if no eigenvalue is above the tolerance;
// - COMPONENT_ROUNDED_AWAY if a component has no weight left;
// - KERNEL_NOT_POSITIVE_SEMIDEFINITE if an exact Gram matrix has a negative eigenvalue.
// Also the errors of IterateOrthogonally and RandomizedGram.
//
// Cost: the kernel block, 2m²(components + 8) flops per product, and 8m² bytes. If randomized: the
// cost of RandomizedGram, and flops in proportion to the number of its entries.
//
// The result does not depend on the number of threads, not even in the last bit. Calls BLAS.
absl::StatusOr<KernelPca> BuildKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                         const TileControl& control);

// Like BuildKernelPca, but also measures the error of a randomized Gram matrix. For this, it
// computes all of K.
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

// Whether the components come from one call of LAPACK, which takes a few seconds at most and cannot
// be cancelled. This is so if the Gram matrix is small and in float64 and the components are a
// large part of its eigenvectors.
//
// For any other small matrix the iteration runs first, and LAPACK takes over if the iteration has
// not converged after kProductsBeforeLapack products.
bool PcaByLapack(const KernelPcaTask& pca, int64_t landmarks);
inline constexpr int64_t kMaxLapackLandmarks = 2048;
inline constexpr int64_t kProductsBeforeLapack = 80;

// Returns cost and result sizes of BuildMeasuredKernelPca. The number of products depends on the
// spectrum, which is unknown. The estimate assumes 40 products, or 120 if there are many
// components. shape.dimensions is the number of components.
MappingCost CostOfKernelPca(const LandmarkShape& shape, const KernelPcaTask& pca);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_KERNEL_PCA_H_
