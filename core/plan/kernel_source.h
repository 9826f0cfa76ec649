// Source of the values of a remote kernel.
#ifndef PHIMAP_CORE_PLAN_KERNEL_SOURCE_H_
#define PHIMAP_CORE_PLAN_KERNEL_SOURCE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"

namespace phimap {

// Calls the user's own kernel. A KernelSource is used by one build, and by one thread at a time.
class KernelSource {
 public:
  // Called repeatedly while a call waits. A status other than OK ends the call with that status.
  using Alive = absl::FunctionRef<absl::Status()>;

  virtual ~KernelSource() = default;

  // Computes out(i, j) = K(left_i, right_j) for n examples left_i and m examples right_j. Unless
  // `diagonal` is null, also computes diagonal[i] = K(left_i, left_i). The values come from the
  // service. They are finite and of the right shape, but nothing else about them is guaranteed.
  //
  // Shapes: out n×m, diagonal n numbers. All examples are of one kind and checked.
  // Cost:   consecutive calls are cheaper if they pass the same `right` at the same address.
  // Errors: those of `alive`, and those of the service, with its name.
  virtual absl::Status Block(const ExamplesView& left, const ExamplesView& right,
                             MatrixView<double> out, double* diagonal, Alive alive) = 0;

  // Returns the unit round-off of the least precise type among all values so far: 2⁻²⁴ if any block
  // came in float32, otherwise 2⁻⁵³.
  virtual double unit() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_KERNEL_SOURCE_H_
