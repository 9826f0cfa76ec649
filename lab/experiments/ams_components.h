// Components of kernel PCA, with rounded weights or without.
#ifndef PHIMAP_LAB_EXPERIMENTS_AMS_COMPONENTS_H_
#define PHIMAP_LAB_EXPERIMENTS_AMS_COMPONENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "lab/experiments/ams_data.h"

namespace phimap::lab {

// An rbf has k(x_i, x) and 0 in an interval of this length.
inline constexpr double kKernelRange = 1;

// Components of unit expansions on rows x, and the weights of each that are not 0.
struct PcaComponents {
  // f_n(x) without λ^{-1/2}: x × n.
  Matrix<double> f;
  std::vector<int64_t> weights;
};

// The first `count` that kernel PCA, not centred, serves; rounded at `scale`, or not at all for 0.
// Components whose weights are rounded away are 0.
absl::StatusOr<PcaComponents> PcaComponentsOf(const KernelData& data,
                                              const Matrix<double>& landmarks,
                                              const Matrix<double>& rows, int64_t count,
                                              double scale, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_COMPONENTS_H_
