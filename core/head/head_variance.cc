#include "core/head/head_variance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/status/check.h"

namespace phimap {
namespace {

// Rows that are multiplied with R⁻¹ at a time.
constexpr int64_t kVarianceRows = 64;

// The d with d(d + 1)/2 = `count`.
int64_t OrderOfTriangle(int64_t count) {
  const auto order =
      static_cast<int64_t>(std::floor(std::sqrt(2 * static_cast<double>(count) + 0.25)));
  PHIMAP_CHECK(order >= 1 && order * (order + 1) / 2 == count);
  return order;
}

}  // namespace

VarianceFunction::VarianceFunction(const HeadVariance& variance)
    : noise_(variance.noise),
      scale_(variance.scale),
      inverse_factor_(PanelMatrix<double>::PackUpperTriangle(
          variance.inverse_factor.data(), OrderOfTriangle(variance.inverse_factor.size()))) {}

template <typename T>
void VarianceFunction::Compute(ConstMatrixView<T> features, absl::Span<const double> residuals,
                               absl::Span<double> variances) const {
  const int64_t d = this->features();
  PHIMAP_CHECK(features.cols() == d);
  Matrix<double> wide = Matrix<double>::Uninit(kVarianceRows, d);
  Matrix<double> image = Matrix<double>::Uninit(kVarianceRows, d);
  std::vector<double*> to;
  for (int64_t i = 0; i < kVarianceRows; ++i) to.push_back(image.row(i));
  for (int64_t first = 0; first < features.rows(); first += kVarianceRows) {
    const int64_t count = std::min(kVarianceRows, features.rows() - first);
    for (int64_t i = 0; i < count; ++i) std::copy_n(features.row(first + i), d, wide.row(i));
    inverse_factor_.Multiply(wide.data(), d, count, to.data());
    for (int64_t i = 0; i < count; ++i) {
      double square = 0;
      for (int64_t k = 0; k < d; ++k) square += image(i, k) * image(i, k);
      variances[first + i] = scale_ * (residuals[first + i] + noise_ * square);
    }
  }
}

template void VarianceFunction::Compute(ConstMatrixView<float>, absl::Span<const double>,
                                        absl::Span<double>) const;
template void VarianceFunction::Compute(ConstMatrixView<double>, absl::Span<const double>,
                                        absl::Span<double>) const;

}  // namespace phimap
