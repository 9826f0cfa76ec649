#include "core/mapping/projection/input_projection.h"

#include <cmath>

#include "core/random/random_stream.h"
#include "core/status/check.h"

namespace phimap {

void ProjectInput(int64_t dimensions, uint64_t seed, InputStage& input) {
  PHIMAP_CHECK(input.projection.empty() && 1 <= dimensions && dimensions <= kMaxPlanDimension);
  if (input.scale.empty()) input.scale.assign(static_cast<size_t>(input.columns), 1.0);
  for (double& scale : input.scale) scale /= std::sqrt(static_cast<double>(dimensions));
  const RandomStream coins(seed, StreamId::kInputSigns);
  input.projection = Matrix<double>::Uninit(input.columns, dimensions);
  for (int64_t i = 0; i < input.projection.size(); ++i) {
    input.projection.data()[i] = coins.UniformBelow(static_cast<uint64_t>(i), 2) == 0 ? 1 : -1;
  }
}

}  // namespace phimap
