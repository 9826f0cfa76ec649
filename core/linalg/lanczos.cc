#include "core/linalg/lanczos.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/linalg/blas.h"
#include "core/linalg/matrix.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

double Norm(const std::vector<double>& a) {
  return std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0));
}

// Orthogonalizes w against the basis. Two passes, because one leaves rounding errors.
void OrthogonalizeAgainst(const std::vector<std::vector<double>>& basis, std::vector<double>& w) {
  for (int pass = 0; pass < 2; ++pass) {
    for (const std::vector<double>& q : basis) {
      const double part = std::inner_product(q.begin(), q.end(), w.begin(), 0.0);
      for (size_t k = 0; k < w.size(); ++k) w[k] -= part * q[k];
    }
  }
}

// Returns the extreme eigenvalues of the tridiagonal matrix. Their residuals follow from `next`,
// the next off-diagonal entry.
absl::StatusOr<SpectrumEnds> EndsOf(const std::vector<double>& diagonal,
                                    const std::vector<double>& below, double next) {
  const int64_t steps = static_cast<int64_t>(diagonal.size());
  Matrix<double> t(steps, steps);
  for (int64_t i = 0; i < steps; ++i) {
    t(i, i) = diagonal[i];
    if (i > 0) t(i, i - 1) = below[i - 1];
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> values, SymmetricEigenvectors(t.view()));
  const double largest = std::max(std::abs(t(0, steps - 1)), std::abs(t(steps - 1, steps - 1)));
  return SpectrumEnds{.lowest = values.front(),
                      .highest = values.back(),
                      .residual = next * largest,
                      .steps = steps};
}

}  // namespace

absl::StatusOr<SpectrumEnds> FindSpectrumEnds(SymmetricProduct multiply, std::vector<double> start,
                                              double tolerance, int64_t max_steps,
                                              const TileControl& control) {
  const int64_t m = static_cast<int64_t>(start.size());
  PHIMAP_CHECK(m >= 1 && max_steps >= 1);
  const int64_t last = std::min(m, max_steps);
  std::vector<std::vector<double>> basis;
  std::vector<double> diagonal;
  std::vector<double> below;
  std::vector<double> q = std::move(start);
  double length = Norm(q);
  PHIMAP_CHECK(length > 0);
  std::vector<double> w(m);
  double progress = 0;
  const auto here = [&](double) { return control(progress); };
  const TileControl within(control.threads_ref(), here);
  for (;;) {
    for (double& number : q) number /= length;
    PHIMAP_RETURN_IF_ERROR(multiply(ConstMatrixView<double>(q.data(), 1, m),
                                    MatrixView<double>(w.data(), 1, m), within));
    diagonal.push_back(std::inner_product(q.begin(), q.end(), w.begin(), 0.0));
    basis.push_back(q);
    OrthogonalizeAgainst(basis, w);
    length = Norm(w);
    PHIMAP_ASSIGN_OR_RETURN(const SpectrumEnds ends, EndsOf(diagonal, below, length));
    // If the start vector lies in the span of a few eigenvectors, only rounding errors are left of
    // w.
    const bool exhausted = length <= 1e-14 * static_cast<double>(m) * ends.norm();
    if (exhausted || ends.residual <= tolerance * ends.norm() || ends.steps == last) return ends;
    progress = static_cast<double>(ends.steps) / static_cast<double>(last);
    PHIMAP_RETURN_IF_ERROR(control(progress));
    below.push_back(length);
    std::swap(q, w);
  }
}

int64_t NormSteps(int64_t m, double error, double doubt) {
  PHIMAP_CHECK(m >= 1 && 0 < error && error < 0.25 && 0 < doubt && doubt < 1);
  const double log = std::log(2 * 1.648 * std::sqrt(static_cast<double>(m)) / doubt);
  return std::min(m, static_cast<int64_t>(std::ceil((log / std::sqrt(error) + 1) / 2)));
}

absl::StatusOr<NormBounds> BoundNorm(SymmetricProduct multiply, std::vector<double> start,
                                     double error, double doubt, const TileControl& control) {
  const int64_t steps = NormSteps(static_cast<int64_t>(start.size()), error, doubt);
  // Uses a tolerance of 0, which never stops the iteration early, because the bound depends on the
  // number of steps.
  PHIMAP_ASSIGN_OR_RETURN(const SpectrumEnds ends,
                          FindSpectrumEnds(multiply, std::move(start), 0, steps, control));
  const double missed = error * (ends.highest - ends.lowest) / (1 - 2 * error);
  return NormBounds{.below = ends.norm(), .above = ends.norm() + missed, .steps = ends.steps};
}

}  // namespace phimap
