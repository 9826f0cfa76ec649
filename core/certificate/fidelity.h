// Measures how well a linear learner on the features stands for a kernel machine: compares the Gram
// matrices of the kernel and of the features on held-out rows, as a learner with an intercept sees
// them.
#ifndef PHIMAP_CORE_CERTIFICATE_FIDELITY_H_
#define PHIMAP_CORE_CERTIFICATE_FIDELITY_H_

#include <algorithm>
#include <cmath>
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
  // λ, as a share of the mean eigenvalue τ of the kernel's centred Gram matrix; larger than the one
  // asked for where λτ would be near the rounding errors of the kernel's values.
  double lambda = 0;
  // ‖S(A) − S(B)‖/‖S(A)‖ in the Frobenius norm; 0 if the learners are equal, 1 for features that
  // are constant.
  double distance = 0;
  bool operator==(const SmootherDistance&) const = default;
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
  // The difference of predictions for a row that is left out of the training, at λ = 1: ‖L(A) −
  // L(B)‖/‖L(A)‖, where L(M) is S(M) without its diagonal and row i divided by 1 − S(M)_ii − 1/m,
  // as ridge regression predicts the label of row i from the others. Smoothers of narrow kernels
  // are both near a multiple of I, however much the predictions for other rows differ: this shows
  // it. 0 if there is nothing to learn from the kernel.
  double left_out_distance = 0;
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

  // kServingLambda, or the larger λ that was measured in its place. Infinite without smoothers.
  double serving_lambda() const;
  // The largest distance of smoothers over the regularizations up to serving_lambda(): what a
  // learner that chooses its λ may lose. λ = 1 shrinks every direction, so that features may differ
  // there by a third and a tuned learner lose nothing. 1 if there is nothing to learn from the
  // kernel.
  double tuned_distance() const;
  // The largest distance over all regularizations, in the same way.
  double largest_distance() const;
  bool operator==(const Fidelity&) const = default;
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

// How two smoothers differ: ‖S(A) − S(B)‖/‖S(A)‖, and the same for rows that are left out
// (Fidelity::left_out_distance); 0/0 is 0.
struct SmootherDifference {
  double distance = 0;
  double left_out = 0;
};

// Returns the differences at each of the ridges. `a` and `b` are centred. Each smoother is one tile
// of work. Errors and requirements are those of SmootherOf, and the errors of `control`.
absl::StatusOr<std::vector<SmootherDifference>> CompareSmoothers(ConstMatrixView<double> a,
                                                                 ConstMatrixView<double> b,
                                                                 absl::Span<const double> ridges,
                                                                 const TileControl& control);

// Returns the distances of the smoothers of two Gram matrices before centring, at each of the
// `lambdas` as a share of the mean eigenvalue of `a`; zeros if `a` is constant up to rounding.
absl::StatusOr<std::vector<double>> DistancesBetween(Matrix<double> a, Matrix<double> b,
                                                     absl::Span<const double> lambdas,
                                                     const TileControl& control);

// Compares the Gram matrix of the kernel with that of the features. Both are m×m and symmetric, and
// all of them is read; they are overwritten. Cost: about 6m³ multiplications and 80m² bytes.
// Errors: those of CompareSmoothers. REQUIRES: m >= 2, entries are finite.
absl::StatusOr<Fidelity> CompareGrams(Matrix<double> kernel, Matrix<double> features,
                                      const TileControl& control);

// Copies the lower triangle of `m` to the upper one.
void MirrorLowerTriangle(MatrixView<double> m);

// Returns the smallest number in `sorted`, which rises, such that at least a share q of the numbers
// do not exceed it. REQUIRES: `sorted` is not empty.
inline double SortedQuantile(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

// Returns the SortedQuantile of numbers that are in any order, and reorders them. Costs O(n).
inline double QuantileOf(std::vector<double>& numbers, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(numbers.size())));
  const auto at = numbers.begin() + static_cast<int64_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(numbers.begin(), at, numbers.end());
  return *at;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_FIDELITY_H_
