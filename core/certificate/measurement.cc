#include "core/certificate/measurement.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/certificate/fidelity.h"
#include "core/certificate/held_out_features.h"
#include "core/certificate/kernel_error.h"
#include "core/certificate/pair_error.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/value_error.h"
#include "core/linalg/blas.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/plan/plan.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

MeasuredError ServingError(const FeatureLengths& lengths) {
  MeasuredError error;
  error.count = lengths.rows();
  double sum = 0;
  for (int64_t i = 0; i < lengths.rows(); ++i) {
    const double norm = std::sqrt(lengths.difference[i]);
    sum += norm;
    error.max = std::max(error.max, norm);
    error.scale = std::max(error.scale, std::sqrt(lengths.reference[i]));
  }
  error.mean = sum / static_cast<double>(lengths.rows());
  return error;
}

double MeanSquaredNorm(const FeatureLengths& lengths) {
  double sum = 0;
  for (const double square : lengths.served) sum += square;
  return sum / static_cast<double>(lengths.rows());
}

// Converts the progress of one part of a measurement to that of the whole. The part begins at
// progress `begin` and takes `share` of the whole.
class PartControl {
 public:
  PartControl(const TileControl& whole, double begin, double share)
      : whole_(whole), begin_(begin), share_(share) {}
  absl::Status operator()(double done) const { return whole_(begin_ + share_ * done); }

 private:
  const TileControl& whole_;
  const double begin_;
  const double share_;
};

// Features of the held-out rows, computed by each of the two plans.
struct HeldOutFeatures {
  Matrix<double> served;
  Matrix<double> reference;
};

absl::StatusOr<HeldOutFeatures> MapHeldOut(const MeasurementTask& task,
                                           ConstMatrixView<double> exact_rows,
                                           const TileControl& control) {
  // OUT_OF_RANGE means that a row's features overflow. Any other error ends the measurement.
  const auto stopped = [](const absl::Status& status) {
    return !status.ok() && status.code() != absl::StatusCode::kOutOfRange;
  };
  absl::StatusOr<Matrix<double>> served = FeaturesOf(
      *task.served, task.rows, {control.threads_ref(), PartControl(control, 0, 0.1)}, task.strings);
  if (stopped(served.status())) return served.status();
  absl::StatusOr<Matrix<double>> reference =
      FeaturesOf(*task.reference, exact_rows,
                 {control.threads_ref(), PartControl(control, 0.1, 0.1)}, task.strings);
  if (stopped(reference.status())) return reference.status();
  if (served.ok() && reference.ok()) {
    return HeldOutFeatures{*std::move(served), *std::move(reference)};
  }
  // The engine's message names a cause that the kernel has, and its remedy.
  const absl::Status& status = served.ok() ? reference.status() : served.status();
  return WithRemedy(
      MakeError(
          absl::StatusCode::kFailedPrecondition, reason::kValueNotRepresentable, "serving_type",
          absl::StrCat(
              "features of the stream's own rows overflow ",
              FloatTypeName(served.ok() ? FloatType::kFloat64 : task.served->serving_type()))),
      absl::StrCat("standardize the inputs or serve in float64 (", status.message(), ")"));
}

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

// Returns ρ(x) + a(x) of each row, the residual and its allowance for rounding as the server would
// compute them. The sums bound kernel errors (core/plan/residual.h). REQUIRES: the task has a
// residual.
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

// Measures how much of the held-out rows lies outside of the landmarks' span. The residual of a row
// x is ρ(x) = K(x, x) − ‖L⁻¹ k_r(x)‖². L is the Cholesky factor of the r landmarks' Gram matrix,
// and k_r(x) holds the kernel values of x with the landmarks. Computes Σ ρ(x)/Σ K(x, x) and the
// quantiles of ρ(x)/K(x, x).
//
// For F2, the share of a row is at least |K(x, x) − ‖F(x)‖²|/K(x, x), where F(x) are the features
// as served. ‖F(x)‖ can be too small because numbers vanish in float32, or too large because of
// rounding.
//
// `x`: rows after the kernel's input stage. Fills in held_out_trace_residual, residual_share and
// serving_share. Errors: those of `control`.
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

// Returns the symmetric matrix F·Fᵀ of the first `count` rows of features.
Matrix<double> GramOf(const Matrix<double>& features, int64_t count) {
  Matrix<double> gram = Matrix<double>::Uninit(count, count);
  SymmetricRankUpdate(1, features.view().Rows(0, count), 0, gram.view());
  MirrorLowerTriangle(gram.view());
  return gram;
}

// Measures the fidelity, and how much of it rounding to the serving type costs. `x`: rows after the
// kernel's input stage.
absl::Status MeasureFidelity(const MeasurementTask& task, const Matrix<double>& x,
                             const HeldOutFeatures& features, const TileControl& control,
                             Certificate& certificate) {
  PHIMAP_ASSIGN_OR_RETURN(
      Matrix<double> kernel,
      FirstRowsGram(task, x, {control.threads_ref(), PartControl(control, 0, 0.2)}));
  Matrix<double> served = GramOf(features.served, kernel.rows());
  if (task.served->serving_type() == FloatType::kFloat32) {
    PHIMAP_ASSIGN_OR_RETURN(
        const std::vector<double> distances,
        DistancesBetween(GramOf(features.reference, kernel.rows()), served.Clone(),
                         {kServingLambda},
                         {control.threads_ref(), PartControl(control, 0.2, 0.3)}));
    certificate.serving_distance = distances[0];
  }
  PHIMAP_ASSIGN_OR_RETURN(certificate.fidelity,
                          CompareGrams(std::move(kernel), std::move(served),
                                       {control.threads_ref(), PartControl(control, 0.5, 0.5)}));
  certificate.left_out_distance = certificate.fidelity->left_out_distance;
  return absl::OkStatus();
}

// Measures the kernel error. `x`: rows after the kernel's input stage.
absl::Status MeasureKernelError(const MeasurementTask& task, const Matrix<double>& x,
                                const Matrix<double>& served, const TileControl& control,
                                Certificate& certificate) {
  std::vector<double> bounds;
  if (task.residual != nullptr) bounds = ResidualBounds(task, served);
  PHIMAP_ASSIGN_OR_RETURN(const KernelErrors errors, KernelError(task, x, served, bounds, control));
  if (!std::isfinite(errors.error.mean) || !std::isfinite(errors.error.max)) {
    return WithRemedy(
        MakeError(absl::StatusCode::kFailedPrecondition, reason::kValueNotRepresentable, "kernel",
                  "kernel values or products of features of the stream's own rows are not finite"),
        task.kernel.has_value() ? ValueRemedy(*task.kernel) : "rescale the kernel");
  }
  certificate.kernel_error = errors.error;
  certificate.effective_rows =
      EffectiveRows{.kernel = std::min(EffectiveCount(errors.kernel_squares),
                                       task.pool_share * static_cast<double>(task.rows.rows())),
                    .error = EffectiveCount(errors.error_squares)};
  if (CanStateIntervals(*certificate.effective_rows)) {
    certificate.kernel_error_interval = JackknifeInterval(errors.by_row);
  }
  certificate.kernel_error_bound = BoundPairs(errors.disjoint);
  if (errors.unbounded == 0) return absl::OkStatus();
  certificate.warnings.push_back(absl::StrCat(
      "residuals do not bound the kernel error of ", errors.unbounded, " of ", errors.error.count,
      " pairs of held-out rows: do not rely on them",
      task.served->serving_type() == FloatType::kFloat32 ? ", or serve in float64" : ""));
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureHeldOut(const MeasurementTask& task, const TileControl& control,
                            Certificate& certificate) {
  if (task.rows.rows() < kMinHeldOutRows) {
    certificate.warnings.push_back(absl::StrCat("errors were not measured: ", task.rows.rows(),
                                                " held-out rows, at least ", kMinHeldOutRows,
                                                " are needed; stream more rows than landmarks"));
    return absl::OkStatus();
  }
  PHIMAP_RETURN_IF_ERROR(control(0));
  const ConstMatrixView<double> exact_rows =
      task.reference_rows.rows() > 0 ? task.reference_rows : task.rows;
  PHIMAP_ASSIGN_OR_RETURN(HeldOutFeatures features, MapHeldOut(task, exact_rows, control));
  const absl::Cleanup keep = [&] {
    if (task.served_features != nullptr) *task.served_features = std::move(features.served);
  };
  const FeatureLengths lengths(features.served, features.reference);
  certificate.serving_error = ServingError(lengths);
  certificate.mean_squared_norm = MeanSquaredNorm(lengths);
  if (!task.kernel.has_value() && task.known == nullptr) return absl::OkStatus();
  Matrix<double> x;
  if (task.strings != nullptr) {
    x = Converted<double, double>(task.rows);
  } else if (task.known == nullptr) {
    x = AfterInputStage(task.reference->input, exact_rows);
  }
  Matrix<double> seen;
  if (task.kernel_input != nullptr) seen = AfterInputStage(*task.kernel_input, task.rows);
  const Matrix<double>& kernel_rows = seen.empty() ? x : seen;
  PHIMAP_RETURN_IF_ERROR(MeasureKernelError(task, kernel_rows, features.served,
                                            {control.threads_ref(), PartControl(control, 0.2, 0.3)},
                                            certificate));
  PHIMAP_RETURN_IF_ERROR(MeasureFidelity(task, kernel_rows, features,
                                         {control.threads_ref(), PartControl(control, 0.5, 0.1)},
                                         certificate));
  if (task.factor.rows() == 0) return absl::OkStatus();
  return MeasureResiduals(task, x, lengths, {control.threads_ref(), PartControl(control, 0.6, 0.4)},
                          certificate);
}

namespace {

// Returns the number of kernel values in all tiles of KernelError, for h rows.
double PairsOf(int64_t h) {
  double pairs = 0;
  for (int64_t t = 0; t < PairTileCount(h); ++t) {
    const auto [begin, end, first] = PairTileAt(h, t);
    pairs += static_cast<double>(end - begin) * static_cast<double>(end - first);
  }
  return pairs;
}

// Returns the work of comparing Gram matrices: that of the kernel, those of the features as served
// and in float64, and the inverses of two of them for each λ and once for the serving type.
Work WorkOfFidelity(const MeasurementShape& shape) {
  const double m = static_cast<double>(std::min(shape.rows, kMaxFidelityRows));
  Work work = WorkOfKernelBlock(1, TiledTriangle(static_cast<int64_t>(m)),
                                static_cast<double>(shape.columns), *shape.value);
  const double types = shape.is_float32 ? 2 : 1;
  work.product_flops += types * m * (m + 1) * static_cast<double>(shape.output_columns);
  const double inverses = 2 * (static_cast<double>(std::size(kFidelityLambdas)) + types - 1);
  work.factor_flops += inverses * 2 * m * m * m;
  work.elements += 3 * inverses * m * m;
  return work;
}

}  // namespace

Work WorkOfMeasurement(const MeasurementShape& shape) {
  if (shape.rows < kMinHeldOutRows) return {};
  const double h = static_cast<double>(shape.rows);
  const double columns = static_cast<double>(shape.columns);
  const double outputs = static_cast<double>(shape.output_columns);
  // Both plans transform the rows. Then their features are widened and compared, which takes as
  // long as 2.5 rbf values per feature.
  Work work{.product_flops = 2 * h * shape.row.product_flops,
            .elements = 2 * h * (shape.row.elements + 2.5 * outputs)};
  if (!shape.value.has_value()) return work;
  const ValueWork compared{shape.value->products, shape.value->elements + 1};
  // Each pair takes a kernel value, an inner product of features, and a comparison.
  const double pairs = PairsOf(shape.rows);
  work += WorkOfKernelBlock(1, pairs, columns, compared);
  work.product_flops += 2 * pairs * outputs;
  work += WorkOfFidelity(shape);
  if (shape.centre_landmarks > 0) {
    const double landmarks = static_cast<double>(shape.centre_landmarks);
    work += WorkOfKernelBlock(h, landmarks, columns, *shape.value);
    if (shape.centre_gram) work += WorkOfKernelBlock(landmarks, landmarks, columns, *shape.value);
  }
  if (shape.rank == 0) return work;
  const double rank = static_cast<double>(shape.rank);
  work += WorkOfKernelBlock(rank, h, columns, compared);
  work.product_flops += rank * rank * h;
  return work;
}

int64_t BytesOfMeasurement(const MeasurementShape& shape, int threads) {
  if (shape.rows < kMinHeldOutRows) return 0;
  constexpr int64_t kDouble = sizeof(double);
  const int64_t features = 2 * shape.rows * shape.output_columns * kDouble;
  // The peak is the larger of two steps: loading the second plan's engine, and later holding the
  // rows after the input stage and one tile per thread.
  const int64_t engine = shape.plan_numbers * kDouble;
  const int64_t tile =
      kHeldOutTileRows *
      std::max({std::min(shape.rows, 2 * kHeldOutTileRows), shape.rank, shape.centre_landmarks}) *
      kDouble;
  const int64_t tiles = std::min<int64_t>(threads, HeldOutTileCount(shape.rows)) * tile;
  // Comparing Gram matrices holds two of them, and two smoothers for each λ.
  const int64_t m = std::min(shape.rows, kMaxFidelityRows);
  const auto matrices = static_cast<int64_t>(2 + 2 * std::size(kFidelityLambdas));
  const int64_t grams = shape.value.has_value() ? matrices * m * m * kDouble : 0;
  return features + std::max(engine, shape.rows * shape.columns * kDouble + std::max(tiles, grams));
}

}  // namespace phimap
