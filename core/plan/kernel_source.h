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
  // Called repeatedly while a call waits; a status other than OK ends the call with it.
  using Alive = absl::FunctionRef<absl::Status()>;

  virtual ~KernelSource() = default;

  // Computes out(i, j) = K(left_i, right_j), and diagonal[i] = K(left_i, left_i) unless `diagonal`
  // is null. The values are the service's: finite and of this shape, without further guarantees.
  //
  // Shapes: n examples left, m right, both of one kind and checked; out n×m, diagonal n.
  // Cost:   repeating the same `right`, at the same address, in consecutive calls is cheaper.
  // Errors: those of `alive`, and those of the service, whose name they carry.
  virtual absl::Status Block(const ExamplesView& left, const ExamplesView& right,
                             MatrixView<double> out, double* diagonal, Alive alive) = 0;

  // The unit round-off of the widest type that all values came in: 2⁻²⁴ once one block was float32,
  // else 2⁻⁵³.
  virtual double unit() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_KERNEL_SOURCE_H_
