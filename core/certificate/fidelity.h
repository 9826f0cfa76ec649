// Measures how well a linear learner on the features stands for a kernel machine: compares the Gram
// matrices of the kernel and of the features on held-out rows, as a learner with an intercept sees
// them.
#ifndef PHIMAP_CORE_CERTIFICATE_FIDELITY_H_
#define PHIMAP_CORE_CERTIFICATE_FIDELITY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Maximum number of held-out rows whose Gram matrices are compared. The cost
// of a comparison grows as n³, so that 500 rows would take five times as long.
inline constexpr int64_t kMaxFidelityRows = 300;
// The regularizations at which smoothers are compared, as shares of the mean eigenvalue. At λ = 1 a
// smoother sees the directions in which the kernel varies most; where few rows carry the kernel,
// only small ones show the others.
inline constexpr double kFidelityLambdas[] = {1, 1e-2, 1e-4};
// The one of them at which serving types are compared, and the largest that a tuned learner is
// taken to choose.
inline constexpr double kServingLambda = 1e-2;

// The relative distance between the smoothers of two Gram matrices at one regularization.
struct SmootherDistance {
  // λ, as a share of the mean eigenvalue τ of the kernel's centred Gram matrix.
  double lambda = 0;
  // ‖S(A) − S(B)‖/‖S(A)‖ in the Frobenius norm; 0 if the learners are equal, 1 for features that
  // are constant.
  double distance = 0;
};

// K is the kernel and F are the features as served, both on m rows. A = HKH and B = HFFᵀH are their
// centred Gram matrices, with H = I − 11ᵀ/m. Centring removes what a learner's intercept absorbs.
struct Fidelity {
  // m.
  int64_t rows = 0;
  // S(M) = M(M + λτI)⁻¹ is the matrix that ridge regression with an intercept multiplies the labels
  // by, so S(A) − S(B) is the difference of the two learners' predictions for any labels. Empty if
  // A is 0 up to rounding: there is then nothing to learn from the kernel.
  std::vector<SmootherDistance> smoothers;
  // √(Σ(K(x, y) − F(x)·F(y))²/ΣK(x, y)²) over pairs x ≠ y; 1 for features that are 0. Then the same
  // for A and B.
  double gram_error = 0;
  double centred_gram_error = 0;
  // Quantiles over rows of |K(x, x) − ‖F(x)‖²|/K(x, x), over rows with K(x, x) > 0.
  double self_error_median = 0;
  double self_error_quantile_95 = 0;
  // The 95 % quantile over pairs of |‖F(x) − F(y)‖²/d(x, y)² − 1|, where d(x, y) is the distance of
  // φ(x) and φ(y). Pairs with d(x, y) = 0 up to rounding are left out.
  double distance_error_quantile_95 = 0;

  // The largest distance of smoothers over the regularizations up to kServingLambda: what a learner
  // that chooses its λ may lose. λ = 1 shrinks every direction, so that features may differ there
  // by a third and a tuned learner lose nothing. 1 if there is nothing to learn from the kernel.
  double tuned_distance() const;
  // The largest distance over all regularizations, in the same way.
  double largest_distance() const;
};

// Returns S(M) = M(M + ridge·I)⁻¹. `m` is symmetric, and all of it is read. Negative eigenvalues,
// which a matrix that should be positive semidefinite has by rounding, count as 0 if they are
// larger than `ridge`. Cost: n³ multiplications; 9n³ if such an eigenvalue is found. REQUIRES:
// ridge > 0, entries are finite. INTERNAL if LAPACK does not converge.
absl::StatusOr<Matrix<double>> SmootherOf(ConstMatrixView<double> m, double ridge);

// Replaces the symmetric matrix M by HMH.
void CentreGram(MatrixView<double> m);

// Returns the mean eigenvalue of a centred Gram matrix, or 0 if it is not larger than rounding
// errors of the Gram matrix before it was centred, whose largest absolute value is `largest`.
double MeanEigenvalue(ConstMatrixView<double> centred, double largest);

// Returns ‖S(A) − S(B)‖/‖S(A)‖ at each of the ridges; 0/0 is 0. `a` and `b` are centred. Each
// smoother is one tile of work. Errors and requirements are those of SmootherOf, and the errors of
// `control`.
absl::StatusOr<std::vector<double>> SmootherDistances(ConstMatrixView<double> a,
                                                      ConstMatrixView<double> b,
                                                      absl::Span<const double> ridges,
                                                      const TileControl& control);

// Returns the distance of the smoothers of two Gram matrices before centring, at kServingLambda
// of the mean eigenvalue of `a`; 0 if `a` is constant up to rounding. Overwrites both matrices.
absl::StatusOr<double> DistanceBetween(Matrix<double> a, Matrix<double> b,
                                       const TileControl& control);

// Compares the Gram matrix of the kernel with that of the features. Both are m×m and symmetric, and
// all of them is read; they are overwritten. Cost: about 6m³ multiplications and 80m² bytes.
// Errors: those of SmootherDistances. REQUIRES: m >= 2, entries are finite.
absl::StatusOr<Fidelity> CompareGrams(Matrix<double> kernel, Matrix<double> features,
                                      const TileControl& control);

// Copies the lower triangle of `m` to the upper one.
void MirrorLowerTriangle(MatrixView<double> m);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_FIDELITY_H_
