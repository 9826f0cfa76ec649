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

// Components of unit expansions on rows x, and the number of nonzero weights of each.
struct PcaComponents {
  // f_n(x) without λ^{-1/2}: x × n.
  Matrix<double> f;
  std::vector<int64_t> weights;
};

// Returns the first `count` components that kernel PCA, not centred, serves. Their weights are
// rounded at `scale`, or not at all if it is 0. Components whose weights are all rounded to 0 are
// 0.
absl::StatusOr<PcaComponents> PcaComponentsOf(const KernelData& data,
                                              const Matrix<double>& landmarks,
                                              const Matrix<double>& rows, int64_t count,
                                              double scale, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_COMPONENTS_H_
