#include "core/mapping/build/serving_loss.h"

#include <utility>
#include <vector>

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

// Returns the first `columns` columns.
Matrix<double> FirstColumns(const Matrix<double>& rows, int64_t columns) {
  return Converted<double, double>(rows.view().Block(0, 0, rows.rows(), columns));
}

}  // namespace

absl::StatusOr<RankLoss> MeasureRankLoss(const BuildSpec& spec, const BuildKernel& kernel,
                                         const BuiltMapping& mapping, BuildProgress& progress) {
  RankLoss loss;
  if (!mapping.lost_rank) return loss;
  Matrix<double> cut, whole;
  if (spec.mapping.kind->has_factor) {
    PHIMAP_ASSIGN_OR_RETURN(whole, kernel.HeldOutCoordinates(mapping, FloatType::kFloat32));
    cut = FirstColumns(whole, mapping.rank());
    if (mapping.tail.ends_sharply) loss.kernel_rank = mapping.rank() + mapping.tail.rank();
  } else {
    const LandmarkTask task = kernel.TaskFor(FloatType::kFloat64);
    PHIMAP_ASSIGN_OR_RETURN(const BuiltMapping wide, BuildMapping(spec, task, progress));
    PHIMAP_ASSIGN_OR_RETURN(cut, kernel.HeldOutCoordinates(mapping, FloatType::kFloat32));
    PHIMAP_ASSIGN_OR_RETURN(whole, kernel.HeldOutCoordinates(wide, FloatType::kFloat64));
  }
  const auto threads = [&] { return progress.threads(); };
  const auto report = [&](double) {
    return progress.Report(BuildStep::kSpectrum, "certificate", 0);
  };
  PHIMAP_ASSIGN_OR_RETURN(
      const std::vector<double> distances,
      DistancesBetween(InnerProducts(whole), InnerProducts(cut),
                       {kServingLambda, kTunedServingLambda}, {threads, report}));
  loss.distance = distances[0];
  loss.tuned_distance = distances[1];
  return loss;
}

void AddRankLoss(const RankLoss& loss, Certificate& certificate) {
  if (!certificate.serving_distance.has_value()) return;
  *certificate.serving_distance += loss.distance;
  certificate.kernel_rank = loss.kernel_rank;
}

}  // namespace phimap
