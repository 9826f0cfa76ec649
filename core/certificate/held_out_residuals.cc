#include "core/certificate/held_out_residuals.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/certificate/kernel_error.h"
#include "core/certificate/quantile.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/value_error.h"
#include "core/linalg/blas.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Returns ‖L⁻¹ k_r(x)‖² for each row: the part of K(x, x) within the landmarks' span.
absl::StatusOr<std::vector<double>> ProjectedNorms(const MeasurementTask& task,
                                                   const Matrix<double>& x,
                                                   const std::vector<double>& norms,
                                                   const TileControl& control) {
  const int64_t h = task.rows.rows();
  const std::vector<double> pivot_norms = SquaredNorms(task.pivots);
  std::vector<double> projected(static_cast<size_t>(h));
  const auto measure = [&](int64_t t) {
    const int64_t begin = t * kHeldOutTileRows;
    const int64_t count = std::min(kHeldOutTileRows, h - begin);
    Matrix<double> block = Matrix<double>::Uninit(task.factor.rows(), count);
    if (task.known != nullptr) {
      for (int64_t k = 0; k < block.rows(); ++k) {
        for (int64_t j = 0; j < count; ++j) block(k, j) = task.rows(begin + j, k);
      }
    } else {
      const std::vector<double> tile_norms(norms.begin() + begin, norms.begin() + begin + count);
      KernelBlock(*task.kernel, task.pivots, pivot_norms, x.view().Rows(begin, count), tile_norms,
                  block.view());
    }
    SolveLowerTriangle(task.factor, block.view());
    for (int64_t k = 0; k < block.rows(); ++k) {
      for (int64_t j = 0; j < count; ++j) projected[begin + j] += block(k, j) * block(k, j);
    }
  };
  PHIMAP_RETURN_IF_ERROR(ForEachTile(control.threads(), HeldOutTileCount(h), control, measure));
  return projected;
}

// Returns a bound on the error of each row's K(x, x), or 0 for a remote kernel, whose errors are
// unknown.
std::vector<double> DiagonalErrors(const MeasurementTask& task, const Matrix<double>& x,
                                   size_t count) {
  if (task.known != nullptr) return std::vector<double>(count, 0.0);
  return SelfErrors(*task.kernel, x.view());
}

// Puts Σ ρ(x)/Σ K(x, x) into the certificate, with its interval if enough rows carry it. The mean
// is over rows and not over pairs, so fewer rows with large residuals will do; but few rows that
// carry the kernel are a sign that others, which were not drawn, would carry more.
void StateMass(const std::vector<double>& residuals, const std::vector<double>& diagonal,
               Certificate& certificate) {
  const double trace = std::accumulate(diagonal.begin(), diagonal.end(), 0.0);
  const double residual = std::accumulate(residuals.begin(), residuals.end(), 0.0);
  certificate.held_out_trace_residual = trace > 0 ? residual / trace : 0.0;
  if (!certificate.effective_rows.has_value() ||
      certificate.effective_rows->kernel < kMinEffectiveRows) {
    return;
  }
  certificate.residual_mass_interval = RatioInterval(residuals, diagonal, kMinResidualRows);
}

// Puts the quantiles of `shares` and `serving` into the certificate. Both exclude rows whose K(x,
// x) is 0; `rows` includes them.
void StateShares(int64_t rows, std::vector<double> shares, std::vector<double> serving,
                 Certificate& certificate) {
  ResidualShare share{.rows = static_cast<int64_t>(shares.size()),
                      .zero_rows = rows - static_cast<int64_t>(shares.size())};
  std::sort(shares.begin(), shares.end());
  if (!shares.empty()) {
    share.median = SortedQuantile(shares, 0.5);
    share.quantile_95 = SortedQuantile(shares, 0.95);
    std::sort(serving.begin(), serving.end());
    certificate.serving_share = SortedQuantile(serving, 0.95);
  }
  certificate.residual_share = share;
}

}  // namespace

std::vector<double> ResidualBounds(const MeasurementTask& task, const Matrix<double>& served) {
  std::vector<double> bounds(static_cast<size_t>(served.rows()));
  std::vector<double> allowances(bounds.size());
  const HeldOutExamples examples(task.rows, task.strings);
  const ExamplesView& rows = examples.view();
  const bool is_narrow = task.served->serving_type() == FloatType::kFloat32;
  for (int64_t begin = 0; begin < rows.rows(); begin += kHeldOutTileRows) {
    const int64_t count = std::min(kHeldOutTileRows, rows.rows() - begin);
    Matrix<float> narrow;
    if (is_narrow) narrow = Converted<float, double>(served.view().Rows(begin, count));
    const void* const features = is_narrow ? static_cast<const void*>(narrow.data())
                                           : static_cast<const void*>(served.row(begin));
    task.residual->Compute(rows.Slice(begin, count), features, bounds.data() + begin,
                           allowances.data() + begin);
  }
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] += allowances[i];
  return bounds;
}

absl::Status MeasureResiduals(const MeasurementTask& task, const Matrix<double>& x,
                              const FeatureLengths& lengths, const TileControl& control,
                              Certificate& certificate) {
  const std::vector<double> norms = SquaredNorms(x.view());
  std::vector<double> projected = lengths.reference;
  if (!task.features_are_projection) {
    PHIMAP_ASSIGN_OR_RETURN(projected, ProjectedNorms(task, x, norms, control));
  }
  const std::vector<double> diagonal = DiagonalOf(task, x, norms);
  const std::vector<double> errors = DiagonalErrors(task, x, diagonal.size());
  std::vector<double> residuals;
  std::vector<double> shares;
  std::vector<double> serving;
  for (int64_t i = 0; i < lengths.rows(); ++i) {
    // Round-off can make the residual of a row within the span slightly negative.
    const double left = std::max(0.0, diagonal[i] - projected[i]);
    residuals.push_back(left);
    if (!(diagonal[i] > kZeroRoundings * errors[i])) continue;
    const double share =
        task.features_are_projection ? std::abs(diagonal[i] - lengths.served[i]) / diagonal[i] : 0;
    shares.push_back(std::max(left / diagonal[i], share));
    serving.push_back(std::sqrt(lengths.difference[i]) / std::sqrt(diagonal[i]));
  }
  StateMass(residuals, diagonal, certificate);
  StateShares(lengths.rows(), std::move(shares), std::move(serving), certificate);
  return absl::OkStatus();
}

}  // namespace phimap
