// Long work: its cost, counted in operations whose speed on a machine is known, for forecasts, and
// the call by which it reports its progress and learns that it should stop.
#ifndef PHIMAP_CORE_LINALG_WORK_H_
#define PHIMAP_CORE_LINALG_WORK_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace phimap {

// Counts are of type double, because counts of operations could overflow an integer.
struct Work {
  // Floating-point additions and multiplications of matrix products, and of solves with many
  // right-hand sides. They run at the vector unit's speed.
  double product_flops = 0;
  // Operations of factorizations and inversions of triangles, which are slower by a constant.
  double factor_flops = 0;
  // Numbers that are computed or read one at a time: kernel values, features, the stream. An rbf
  // value is one element.
  double elements = 0;

  double flops() const { return product_flops + factor_flops; }
  // Rough duration. The unit is the duration of one operation of a large product. In a nanosecond,
  // a core does about 50 such operations, or computes one element. The duration is accurate enough
  // only for shares of a whole.
  double weight() const { return product_flops + 1.7 * factor_flops + 50 * elements; }
  Work& operator+=(const Work& other) {
    product_flops += other.product_flops;
    factor_flops += other.factor_flops;
    elements += other.elements;
    return *this;
  }
  friend Work operator+(Work a, const Work& b) { return a += b; }
};

// Called between tiles with the share of the work that is done (0..1). The call may block to let
// more urgent work run first. A status other than OK ends the work, which returns that status.
using Checkpoint = absl::FunctionRef<absl::Status(double fraction)>;

// For callers that neither follow the progress nor stop the work.
inline absl::Status NeverStop(double) { return absl::OkStatus(); }

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_WORK_H_
