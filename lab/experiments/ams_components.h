// Components of kernel PCA, with or without rounded weights.
#ifndef PHIMAP_LAB_EXPERIMENTS_AMS_COMPONENTS_H_
#define PHIMAP_LAB_EXPERIMENTS_AMS_COMPONENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "lab/experiments/ams_data.h"

namespace phimap::lab {

// Length of an interval that contains 0 and all values k(x_i, x) of an rbf.
inline constexpr double kKernelRange = 1;

// Kernel PCA components with unit weight vectors, evaluated on rows x.
struct PcaComponents {
  // f_n(x) without the factor λ_n^{-1/2}: one row per x, one column per n.
  Matrix<double> f;
  std::vector<int64_t> weights;
};

// Returns the first `count` components of uncentred kernel PCA, as a server computes them. Weights
// are rounded at `scale`, or not rounded if `scale` is 0. A component whose weights are all rounded
// to 0 is 0.
absl::StatusOr<PcaComponents> PcaComponentsOf(const KernelData& data,
                                              const Matrix<double>& landmarks,
                                              const Matrix<double>& rows, int64_t count,
                                              double scale, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_COMPONENTS_H_
