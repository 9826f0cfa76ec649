#include "core/certificate/measurement.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/fidelity.h"
#include "core/certificate/held_out_features.h"
#include "core/certificate/held_out_residuals.h"
#include "core/certificate/kernel_error.h"
#include "core/certificate/pair_error.h"
#include "core/kernel/value_error.h"
#include "core/linalg/blas.h"
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
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "VALUE_NOT_REPRESENTABLE", "spec.serving_type",
      absl::StrCat("features of the stream's own rows overflow ",
                   FloatTypeName(served.ok() ? FloatType::kFloat64 : task.served->serving_type()),
                   "; standardize the inputs or serve in float64 (", status.message(), ")"));
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
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "VALUE_NOT_REPRESENTABLE", "kernel",
        absl::StrCat("kernel values or products of features of the stream's own rows "
                     "are not finite; ",
                     task.kernel.has_value() ? ValueRemedy(*task.kernel) : "rescale the kernel"));
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

}  // namespace phimap
