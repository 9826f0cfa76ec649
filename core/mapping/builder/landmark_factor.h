// The Gram matrix of landmarks, normalised and factored, for F2 and F3.
#ifndef PHIMAP_CORE_MAPPING_BUILDER_LANDMARK_FACTOR_H_
#define PHIMAP_CORE_MAPPING_BUILDER_LANDMARK_FACTOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/linalg/matrix.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/linalg/tiles.h"
#include "core/plan/plan.h"

namespace phimap {

// Values of a remote kernel on the landmarks.
struct RemoteLandmarks {
  // The lower triangle of K(S, S), d×d, and the unit round-off of its values.
  ConstMatrixView<double> gram;
  double unit = 0x1p-53;
  // The stage of a plan, with an example for each landmark.
  RemoteFeatures block;
};

// Input of the builders.
struct LandmarkTask {
  // The kernel with all parameters resolved.
  KernelExpression kernel;
  // The input stage that the plan gets.
  InputStage input;
  // Landmarks after the input stage in float64, d×p, not yet rounded to the serving type.
  ConstMatrixView<double> landmarks;
  FloatType serving_type = FloatType::kFloat32;
  // In the place of kernel and landmarks, where it is not null.
  const RemoteLandmarks* remote = nullptr;

  int64_t count() const { return remote != nullptr ? remote->gram.rows() : landmarks.rows(); }
};

// Returns the landmarks rounded to the serving type. FAILED_PRECONDITION (VALUE_NOT_REPRESENTABLE)
// if one overflows.
absl::StatusOr<Matrix<double>> ServedLandmarks(const LandmarkTask& task);

// D^{-1/2}·M·D^{-1/2} ≈ L·Lᵀ on r pivots: M the kernel on the rounded rows that are served, D its
// diagonal. Landmarks are compared with their own K(x, x), because margins are cosines, row by row:
// compared with the largest, all rows whose K(x, x) is small would be dropped.
struct LandmarkFactor {
  // Factor of the normalised matrix, so that diagonal and residuals are shares of a landmark's own
  // K(x, x); pivots and dropped rows by their places among all landmarks.
  PivotedCholesky cholesky;
  // max(d·u, 4β): u = 2⁻²⁴ or 2⁻⁵³ by the serving type, β the values' error over √(K(x, x)K(y, y)).
  double tolerance = 0;
  // Landmarks whose K(x, x) is nothing but rounding (kZeroRoundings); they are among no others.
  int64_t zero_landmarks = 0;
  // tr K over the landmarks, and the part of it that the pivots leave unexplained.
  double trace = 0;
  double residual_trace = 0;
  // The pivots' rows, r×p, as served (none of values of a remote kernel), and K(x, x) of each.
  Matrix<double> pivots;
  std::vector<double> self;
  // L of K itself, r×r, lower: rows of the normalised factor times √K(x, x).
  Matrix<double> factor;

  int64_t rank() const { return cholesky.rank(); }
};

// Shares of a builder's reported work after the Gram matrix, and after its factor: the rest takes
// about as long as the triangle's inverse.
struct FactorShares {
  double gram = 0;
  double factor = 0;
};
FactorShares SharesOfFactor(const LandmarkTask& task);

// Fills in all but `factor`, which is left as that of the normalised matrix until Denormalise.
//
// Errors: as ServedLandmarks and FactorPivoted, which refuses no expression that is positive
//         semidefinite by construction; FAILED_PRECONDITION (KERNEL_ZERO) when K is 0 on every
//         landmark, (KERNEL_PRECISION_TOO_LOW) when float64 leaves nothing of its values;
//         (KERNEL_NOT_POSITIVE_SEMIDEFINITE) for a negative K(x, x); INVALID_ARGUMENT
//         (VALUE_NOT_FINITE).
absl::StatusOr<LandmarkFactor> FactorLandmarks(const LandmarkTask& task,
                                               const TileControl& control);

// Rows i of `w` divided by √K(x, x) of pivot i: weights of kernel values from weights of normalised
// ones.
void ScaleWeights(const LandmarkFactor& landmarks, MatrixView<double> w);
// Makes `factor` that of K itself.
void Denormalise(LandmarkFactor& landmarks);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILDER_LANDMARK_FACTOR_H_
