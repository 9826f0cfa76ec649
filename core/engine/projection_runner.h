// The projection stage of an engine: y = (z − μ)·W.
#ifndef PHIMAP_CORE_ENGINE_PROJECTION_RUNNER_H_
#define PHIMAP_CORE_ENGINE_PROJECTION_RUNNER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/panel_product.h"
#include "core/plan/plan.h"

namespace phimap {

// Holds W in panels, in whatever form the plan has W. Immutable, thread-safe.
template <typename T>
class ProjectionRunner {
 public:
  // RESOURCE_EXHAUSTED if the dense form of a sparse W takes over 1 GiB. Throws std::bad_alloc.
  static absl::StatusOr<ProjectionRunner> Load(const ServingStages<T>& stages);

  // Whether there is no W, so that features are the outputs; z and y are then the same memory.
  bool in_place() const { return matrix_.columns() == 0; }
  // Whether the stage does nothing.
  bool empty() const { return in_place() && centre_.empty(); }

  // Computes y[i] for each of `count` rows of features z[i], and overwrites z. Sets finite[i] to
  // false if an output of row i is not finite. REQUIRES: not empty(). If in_place(), z = y.
  // Otherwise z[i] = z[0] + i · stride.
  void Run(T* const* z, int64_t stride, int64_t count, T* const* y, bool* finite) const;

  int64_t memory_bytes() const {
    return matrix_.memory_bytes() + static_cast<int64_t>(centre_.size() * sizeof(T));
  }
  int64_t multiplications() const { return matrix_.multiplications(); }

 private:
  std::vector<T> centre_;  // μ; empty for 0
  PanelMatrix<T> matrix_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_PROJECTION_RUNNER_H_
