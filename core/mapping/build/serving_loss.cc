#include "core/mapping/build/serving_loss.h"

#include <utility>

#include "core/certificate/fidelity.h"
#include "core/linalg/blas.h"
#include "core/mapping/build/mapping_build.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Returns the symmetric matrix of inner products of rows.
Matrix<double> InnerProducts(const Matrix<double>& rows) {
  Matrix<double> gram = Matrix<double>::Uninit(rows.rows(), rows.rows());
  SymmetricRankUpdate(1, rows.view(), 0, gram.view());
  MirrorLowerTriangle(gram.view());
  return gram;
}

// Builds the mapping for float64, or only its factor if it has one.
absl::StatusOr<BuiltMapping> BuildInFloat64(const BuildSpec& spec, const BuildKernel& kernel,
                                            BuildProgress& progress) {
  const LandmarkTask task = kernel.TaskFor(FloatType::kFloat64);
  if (!spec.mapping.kind->has_factor) return BuildMapping(spec, task, progress);
  const auto threads = [&] { return progress.threads(); };
  const auto checkpoint = [&](double f) {
    return progress.Report(BuildStep::kMeasurement, "certificate", f);
  };
  BuiltMapping mapping;
  LandmarkFactor& landmarks = mapping;
  PHIMAP_ASSIGN_OR_RETURN(landmarks, FactorLandmarks(task, {threads, checkpoint}));
  Denormalise(landmarks);
  mapping.used = landmarks.cholesky.pivots;
  return mapping;
}

// Whether the factor for float64 ends because the kernel has no more dimensions on the landmarks,
// not because pivots slide into rounding, as those of smooth kernels of full rank do.
bool EndsSharply(const LandmarkFactor& wide) {
  constexpr double kFarFromRounding = 1000;
  return !wide.cholesky.dropped.empty() && wide.rank() > 0 &&
         wide.cholesky.diagonal.back() > kFarFromRounding * wide.tolerance;
}

}  // namespace

absl::Status AddRankLoss(const BuildSpec& spec, const BuildKernel& kernel,
                         const BuiltMapping& mapping, BuildProgress& progress,
                         Certificate& certificate) {
  if (!mapping.lost_rank || !certificate.serving_distance.has_value()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const BuiltMapping wide, BuildInFloat64(spec, kernel, progress));
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> cut,
                          kernel.HeldOutCoordinates(mapping, FloatType::kFloat32));
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> whole,
                          kernel.HeldOutCoordinates(wide, FloatType::kFloat64));
  PHIMAP_ASSIGN_OR_RETURN(const double lost,
                          DistanceBetween(InnerProducts(whole), InnerProducts(cut)));
  *certificate.serving_distance += lost;
  if (spec.mapping.kind->has_factor && wide.rank() > mapping.rank() && EndsSharply(wide)) {
    certificate.kernel_rank = wide.rank();
  }
  return absl::OkStatus();
}

}  // namespace phimap
