#include "lab/experiments/ams_components.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "core/certificate/held_out_features.h"
#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap::lab {

absl::StatusOr<PcaComponents> PcaComponentsOf(const KernelData& data,
                                              const Matrix<double>& landmarks,
                                              const Matrix<double>& rows, int64_t count,
                                              double scale, uint64_t seed) {
  const LandmarkTask task{.kernel = data.kernel,
                          .input = {.columns = data.columns()},
                          .landmarks = landmarks.view(),
                          .serving_type = FloatType::kFloat64};
  const absl::StatusOr<KernelPca> pca = BuildKernelPca(
      task, {.components = count, .centred = false, .seed = seed, .rounding = scale}, NeverStop);
  if (scale > 0 && absl::IsFailedPrecondition(pca.status())) {
    // All weights were rounded to 0, so f̂ is 0.
    return PcaComponents{.f = Matrix<double>(rows.rows(), count),
                         .weights = std::vector<int64_t>(static_cast<size_t>(count))};
  }
  PHIMAP_RETURN_IF_ERROR(pca.status());
  PHIMAP_CHECK(static_cast<int64_t>(pca->eigenvalues.size()) == count);
  PcaComponents found{.weights =
                          std::vector<int64_t>(static_cast<size_t>(count), landmarks.rows())};
  PHIMAP_ASSIGN_OR_RETURN(found.f, FeaturesOf(pca->served, rows.view(), NeverStop));
  for (int64_t i = 0; i < found.f.rows(); ++i) {
    for (int64_t n = 0; n < count; ++n) {
      found.f(i, n) *= std::sqrt(pca->eigenvalues[static_cast<size_t>(n)]);
    }
  }
  if (scale == 0) return found;
  const auto& stages = std::get<ServingStages<double>>(pca->served.stages);
  std::fill(found.weights.begin(), found.weights.end(), 0);
  for (const int32_t n : std::get<SparseProjection<double>>(stages.projection).column_indices) {
    ++found.weights[static_cast<size_t>(n)];
  }
  return found;
}

}  // namespace phimap::lab
