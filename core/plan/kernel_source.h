// Source of the values of a remote kernel.
#ifndef PHIMAP_CORE_PLAN_KERNEL_SOURCE_H_
#define PHIMAP_CORE_PLAN_KERNEL_SOURCE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"

namespace phimap {

// Calls the user's own kernel. Used by one build: one thread at a time.
class KernelSource {
 public:
  // Called repeatedly while a call waits. A status other than OK ends the call with that status.
  using Alive = absl::FunctionRef<absl::Status()>;

  virtual ~KernelSource() = default;

  // Computes out(i, j) = K(left_i, right_j), and diagonal[i] = K(left_i, left_i) unless `diagonal`
  // is null. The values are those of the service: finite and of the right shape, with no further
  // guarantees.
  //
  // Shapes: n examples left, m right, both of one kind and checked; out n×m, diagonal n. Cost:
  // repeating the same `right`, at the same address, in consecutive calls is cheaper. Errors: those
  // of `alive`, and those of the service, with its name.
  virtual absl::Status Block(const ExamplesView& left, const ExamplesView& right,
                             MatrixView<double> out, double* diagonal, Alive alive) = 0;

  // The unit round-off of the least precise type among all values so far: 2⁻²⁴ if any block came in
  // float32, otherwise 2⁻⁵³.
  virtual double unit() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_KERNEL_SOURCE_H_
