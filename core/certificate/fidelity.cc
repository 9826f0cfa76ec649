#include "core/certificate/fidelity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

double LargestEntry(ConstMatrixView<double> m) {
  double largest = 0;
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < m.cols(); ++j) largest = std::max(largest, std::abs(m(i, j)));
  }
  return largest;
}

// Returns λ, but at least so much that rounding errors of a Gram matrix of `rows` rows, whose
// largest absolute value before centring was `largest`, change a smoother by no more than a
// hundredth. The errors are a symmetric matrix of which no eigenvalue is over rows·u·largest by
// much, and of which all rows directions together count √rows times as much as one. `mean`: τ.
double LambdaOverRounding(double lambda, double mean, int64_t rows, double largest) {
  const auto m = static_cast<double>(rows);
  return std::max(lambda, 100 * m * 0x1p-53 * largest / mean);
}

// Computes the smoother from eigenvectors, for a matrix with a negative eigenvalue.
absl::StatusOr<Matrix<double>> SmootherByEigenvectors(ConstMatrixView<double> m, double ridge) {
  Matrix<double> vectors = Converted<double, double>(m);
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> values, SymmetricEigenvectors(vectors.view()));
  const int64_t n = m.rows();
  Matrix<double> scaled = Matrix<double>::Uninit(n, n);
  for (int64_t k = 0; k < n; ++k) {
    const double value = std::max(0.0, values[k]);
    for (int64_t i = 0; i < n; ++i) scaled(i, k) = value / (value + ridge) * vectors(k, i);
  }
  Matrix<double> smoother = Matrix<double>::Uninit(n, n);
  Multiply(1, scaled.view(), vectors.view(), 0, smoother.view());
  return smoother;
}

// Relative error ‖a − b‖/‖a‖ over the entries off the diagonal, or over all entries.
double RelativeError(ConstMatrixView<double> a, ConstMatrixView<double> b, bool with_diagonal) {
  double of_difference = 0;
  double of_a = 0;
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) {
      if (i == j && !with_diagonal) continue;
      const double difference = a(i, j) - b(i, j);
      of_difference += difference * difference;
      of_a += a(i, j) * a(i, j);
    }
  }
  return of_difference == 0 ? 0 : std::sqrt(of_difference / of_a);
}

// ‖L(A) − L(B)‖/‖L(A)‖ (Fidelity::left_out_distance) of two smoothers of centred matrices.
double LeftOutDistance(ConstMatrixView<double> a, ConstMatrixView<double> b) {
  const auto share = 1 / static_cast<double>(a.rows());
  // The eigenvalues of a smoother are under 1, so that this is positive but for rounding.
  const auto left = [share](double leverage) { return std::max(1 - leverage - share, 1e-12); };
  double of_difference = 0;
  double of_a = 0;
  for (int64_t i = 0; i < a.rows(); ++i) {
    const double left_a = left(a(i, i));
    const double left_b = left(b(i, i));
    for (int64_t j = 0; j < a.cols(); ++j) {
      if (i == j) continue;
      const double from_a = a(i, j) / left_a;
      const double difference = from_a - b(i, j) / left_b;
      of_difference += difference * difference;
      of_a += from_a * from_a;
    }
  }
  return of_difference == 0 ? 0 : std::sqrt(of_difference / of_a);
}

void MeasureSelfErrors(const Matrix<double>& kernel, const Matrix<double>& features,
                       Fidelity& fidelity) {
  std::vector<double> shares;
  for (int64_t i = 0; i < kernel.rows(); ++i) {
    if (!(kernel(i, i) > 0)) continue;
    shares.push_back(std::abs(kernel(i, i) - features(i, i)) / kernel(i, i));
  }
  if (shares.empty()) return;
  std::sort(shares.begin(), shares.end());
  fidelity.self_error_median = SortedQuantile(shares, 0.5);
  fidelity.self_error_quantile_95 = SortedQuantile(shares, 0.95);
}

// `a`, `b`: centred. Distances do not depend on centring, and centred matrices have smaller
// rounding errors. `least` is the rounding error of a squared distance.
double DistanceErrorQuantile(const Matrix<double>& a, const Matrix<double>& b, double least) {
  std::vector<double> errors;
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < i; ++j) {
      const double exact = a(i, i) + a(j, j) - 2 * a(i, j);
      if (!(exact > least)) continue;
      errors.push_back(std::abs((b(i, i) + b(j, j) - 2 * b(i, j)) / exact - 1));
    }
  }
  if (errors.empty()) return 0;
  return QuantileOf(errors, 0.95);
}

// Returns the largest distance at regularizations up to `most`: 1 if there are no distances, NaN if
// one is.
double LargestDistance(const std::vector<SmootherDistance>& smoothers, double most) {
  if (smoothers.empty()) return 1;
  double largest = 0;
  for (const SmootherDistance& smoother : smoothers) {
    if (smoother.lambda > most) continue;
    if (std::isnan(smoother.distance)) return smoother.distance;
    largest = std::max(largest, smoother.distance);
  }
  return largest;
}

}  // namespace

double Fidelity::serving_lambda() const {
  double least = std::numeric_limits<double>::infinity();
  for (const SmootherDistance& smoother : smoothers) {
    if (smoother.lambda >= kServingLambda) least = std::min(least, smoother.lambda);
  }
  return least;
}

double Fidelity::tuned_distance() const { return LargestDistance(smoothers, serving_lambda()); }

double Fidelity::largest_distance() const {
  return LargestDistance(smoothers, std::numeric_limits<double>::infinity());
}

absl::StatusOr<Matrix<double>> SmootherOf(ConstMatrixView<double> m, double ridge) {
  PHIMAP_CHECK(m.rows() == m.cols() && ridge > 0);
  // S = I − ridge·(M + ridge·I)⁻¹. Scaled by 1/ridge, so that no entry of the inverse overflows.
  const int64_t n = m.rows();
  Matrix<double> inverse = Matrix<double>::Uninit(n, n);
  for (int64_t i = 0; i < n; ++i) {
    const double* const from = m.row(i);
    double* const to = inverse.row(i);
    for (int64_t j = 0; j <= i; ++j) to[j] = from[j] / ridge;
    to[i] += 1;
  }
  if (!InvertPositiveDefinite(inverse.view())) return SmootherByEigenvectors(m, ridge);
  for (int64_t i = 0; i < n; ++i) {
    double* const row = inverse.row(i);
    for (int64_t j = 0; j < i; ++j) {
      row[j] = -row[j];
      inverse(j, i) = row[j];
    }
    row[i] = 1 - row[i];
  }
  return inverse;
}

void CentreGram(MatrixView<double> m) {
  const int64_t n = m.rows();
  std::vector<double> means(static_cast<size_t>(n));
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) means[i] += m(i, j) / static_cast<double>(n);
    mean += means[i] / static_cast<double>(n);
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) m(i, j) += mean - means[i] - means[j];
  }
}

double MeanEigenvalue(ConstMatrixView<double> centred, double largest) {
  double mean = 0;
  const auto n = static_cast<double>(centred.rows());
  for (int64_t i = 0; i < centred.rows(); ++i) mean += centred(i, i) / n;
  // Each entry of a Gram matrix has an error of some units of round-off of its largest entry, and
  // centring adds three entries to each.
  constexpr double kRoundings = 64;
  return mean > kRoundings * 0x1p-53 * largest ? mean : 0;
}

absl::StatusOr<std::vector<SmootherDifference>> CompareSmoothers(ConstMatrixView<double> a,
                                                                 ConstMatrixView<double> b,
                                                                 absl::Span<const double> ridges,
                                                                 const TileControl& control) {
  const auto count = static_cast<int64_t>(ridges.size());
  std::vector<absl::StatusOr<Matrix<double>>> smoothers(static_cast<size_t>(2 * count));
  PHIMAP_RETURN_IF_ERROR(ForEachTile(control.threads(), 2 * count, control, [&](int64_t tile) {
    smoothers[tile] = SmootherOf(tile % 2 == 0 ? a : b, ridges[tile / 2]);
  }));
  std::vector<SmootherDifference> differences;
  for (int64_t i = 0; i < count; ++i) {
    PHIMAP_RETURN_IF_ERROR(smoothers[2 * i].status());
    PHIMAP_RETURN_IF_ERROR(smoothers[2 * i + 1].status());
    const ConstMatrixView<double> of_a = smoothers[2 * i]->view();
    const ConstMatrixView<double> of_b = smoothers[2 * i + 1]->view();
    differences.push_back(
        {RelativeError(of_a, of_b, /*with_diagonal=*/true), LeftOutDistance(of_a, of_b)});
  }
  return differences;
}

absl::StatusOr<std::vector<double>> DistancesBetween(Matrix<double> a, Matrix<double> b,
                                                     absl::Span<const double> lambdas,
                                                     const TileControl& control) {
  const double largest = LargestEntry(a.view());
  CentreGram(a.view());
  CentreGram(b.view());
  const double mean = MeanEigenvalue(a.view(), largest);
  std::vector<double> distances(lambdas.size());
  if (mean == 0) return distances;
  std::vector<double> ridges;
  for (const double lambda : lambdas) {
    ridges.push_back(mean * LambdaOverRounding(lambda, mean, a.rows(), largest));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<SmootherDifference> differences,
                          CompareSmoothers(a.view(), b.view(), ridges, control));
  for (size_t i = 0; i < distances.size(); ++i) distances[i] = differences[i].distance;
  return distances;
}

absl::StatusOr<Fidelity> CompareGrams(Matrix<double> kernel, Matrix<double> features,
                                      const TileControl& control) {
  PHIMAP_CHECK(kernel.rows() >= 2 && kernel.rows() == features.rows());
  Fidelity fidelity{.rows = kernel.rows()};
  fidelity.gram_error = RelativeError(kernel.view(), features.view(), /*with_diagonal=*/false);
  MeasureSelfErrors(kernel, features, fidelity);
  const double largest = LargestEntry(kernel.view());
  CentreGram(kernel.view());
  CentreGram(features.view());
  fidelity.centred_gram_error =
      RelativeError(kernel.view(), features.view(), /*with_diagonal=*/false);
  const double mean = MeanEigenvalue(kernel.view(), largest);
  if (mean == 0) return fidelity;
  fidelity.distance_error_quantile_95 =
      DistanceErrorQuantile(kernel, features, 256 * 0x1p-53 * largest);
  std::vector<double> ridges;
  for (const double lambda : kFidelityLambdas) {
    fidelity.smoothers.push_back({LambdaOverRounding(lambda, mean, kernel.rows(), largest), 0});
    ridges.push_back(mean * fidelity.smoothers.back().lambda);
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<SmootherDifference> differences,
                          CompareSmoothers(kernel.view(), features.view(), ridges, control));
  for (size_t i = 0; i < differences.size(); ++i) {
    fidelity.smoothers[i].distance = differences[i].distance;
  }
  fidelity.left_out_distance = differences[0].left_out;
  return fidelity;
}

void MirrorLowerTriangle(MatrixView<double> m) {
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < i; ++j) m(j, i) = m(i, j);
  }
}

}  // namespace phimap
