// The Gram matrix of landmarks, normalised and factored, for F2 and F3.
#ifndef PHIMAP_CORE_MAPPING_BUILDER_PARTS_LANDMARK_FACTOR_H_
#define PHIMAP_CORE_MAPPING_BUILDER_PARTS_LANDMARK_FACTOR_H_

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
  // The d×d matrix K(S, S), where S are the d landmarks. Only the lower triangle is read. `unit` is
  // the unit round-off of the values.
  ConstMatrixView<double> gram;
  double unit = 0x1p-53;
  // Feature stage that holds one example per landmark.
  RemoteFeatures block;
};

// Input of the builders.
struct LandmarkTask {
  // The kernel with all parameters resolved.
  KernelExpression kernel;
  // Input stage of the plan.
  InputStage input;
  // Landmarks after the input stage in float64, d×p, not yet rounded to the serving type.
  ConstMatrixView<double> landmarks;
  FloatType serving_type = FloatType::kFloat32;
  // If not null, used instead of `kernel` and `landmarks`.
  const RemoteLandmarks* remote = nullptr;

  int64_t count() const { return remote != nullptr ? remote->gram.rows() : landmarks.rows(); }
};

// Returns the landmarks rounded to the serving type, as they are served. FAILED_PRECONDITION
// (VALUE_NOT_REPRESENTABLE) if one overflows.
absl::StatusOr<Matrix<double>> ServedLandmarks(const LandmarkTask& task);

// What the tolerance of float64 would keep of the landmarks that a larger one dropped: the
// factorization goes on in the Schur complement that it left. Empty if that is nothing.
struct FactorTail {
  // Indices into all landmarks, and their rows as served.
  std::vector<int64_t> landmarks;
  Matrix<double> pivots;
  // Rows r, r + 1, … of the factor of M, a q×(r + q) matrix for q landmarks after r pivots.
  Matrix<double> rows;
  // Whether the kernel's rank on the landmarks ends with these: what is left of all others, of
  // which some repeat no pivot, is rounding, and what was left of the last of these was not. The
  // pivots of smooth kernels of full rank slide down to rounding instead.
  bool ends_sharply = false;

  int64_t rank() const { return static_cast<int64_t>(landmarks.size()); }
};

// A truncated Cholesky factorization of the normalised Gram matrix of the landmarks, on r pivots:
//   D^{-1/2}·M·D^{-1/2} ≈ L·Lᵀ
// M is the kernel matrix of the rounded rows that are served, and D is the diagonal of M. L is the
// factor.
//
// Normalisation means that the residual of a landmark x is compared with its own K(x, x). This is
// the right scale, because margins are cosines. A comparison with the largest K(x, x) would drop
// all rows with a small K(x, x).
struct LandmarkFactor {
  // Result of factoring the normalised matrix: its diagonal and residuals are shares of a
  // landmark's own K(x, x). Pivots and dropped rows are indices into all landmarks.
  PivotedCholesky cholesky;
  // Tolerance of the factorization: max(d·u, 4β) for d landmarks. Here u is the unit round-off of
  // the serving type (2⁻²⁴ or 2⁻⁵³), or that of a remote kernel's values if larger. β is the error
  // of a kernel value K(x, y), divided by √(K(x, x)·K(y, y)).
  double tolerance = 0;
  // The tolerance that a build for float64 would have.
  double float64_tolerance = 0;
  // Number of landmarks whose K(x, x) is only rounding (kZeroRoundings). They are neither pivots
  // nor dropped rows.
  int64_t zero_landmarks = 0;
  // tr K over the landmarks, and the part of it that the pivots do not explain.
  double trace = 0;
  double residual_trace = 0;
  // The pivots' rows as served, an r×p matrix; p is 0 for a remote kernel. `self` has K(x, x) of
  // each pivot x.
  Matrix<double> pivots;
  std::vector<double> self;
  // The lower r×r factor of M itself, without normalisation. Its row i is row i of L times √K(x,
  // x), where x is pivot i.
  Matrix<double> factor;
  FactorTail tail;

  int64_t rank() const { return cholesky.rank(); }
};

// Turns kernel values into coordinates: `values` is (r + q)×m and holds K(x, y) for each pivot and
// each landmark x of the tail, and m rows y. Returns the m×(r + q) matrix whose rows' inner
// products are those of the projections on the span of all of them; its first r columns belong to
// the pivots alone. REQUIRES: the factor is not normalised (Denormalise).
Matrix<double> CoordinatesOf(const LandmarkFactor& landmarks, Matrix<double> values);

// Shares of a builder's reported progress at which the Gram matrix and its factor are done. The
// rest is the inverse of the factor, or work that is assumed to take as long.
struct FactorShares {
  double gram = 0;
  double factor = 0;
};
FactorShares SharesOfFactor(const LandmarkTask& task);

// Computes and factors the Gram matrix of the landmarks. Until Denormalise is called, `factor` of
// the result is the factor of the normalised matrix.
//
// Errors: those of ServedLandmarks and FactorPivoted (which never refuses an expression that is
// positive semidefinite by construction). INVALID_ARGUMENT (VALUE_NOT_FINITE). FAILED_PRECONDITION:
// - KERNEL_ZERO if K(x, x) is 0 on every landmark x;
// - KERNEL_PRECISION_TOO_LOW if the kernel's values in float64 are too inaccurate to decide the
//   rank;
// - KERNEL_NOT_POSITIVE_SEMIDEFINITE if some K(x, x) is negative.
absl::StatusOr<LandmarkFactor> FactorLandmarks(const LandmarkTask& task,
                                               const TileControl& control);

// Divides each row i of `w` by √K(x, x), where x is pivot i. Weights of normalised kernel values
// thus become weights of kernel values.
void ScaleWeights(const LandmarkFactor& landmarks, MatrixView<double> w);
// Turns `factor` from the factor of the normalised matrix into that of the matrix itself.
void Denormalise(LandmarkFactor& landmarks);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILDER_PARTS_LANDMARK_FACTOR_H_
