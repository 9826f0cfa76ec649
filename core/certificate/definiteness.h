// Tests whether the Gram matrix of a kernel on given rows has a negative eigenvalue. For kernels
// that are not known to be positive semidefinite.
#ifndef PHIMAP_CORE_CERTIFICATE_DEFINITENESS_H_
#define PHIMAP_CORE_CERTIFICATE_DEFINITENESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

// Maximum number of rows in a probe. The eigenvalues of 256 rows take about 10 ms.
inline constexpr int64_t kMaxProbeRows = 256;

// The extreme eigenvalues of a Gram matrix, and a bound on the error of the smallest one.
struct DefinitenessProbe {
  int64_t rows = 0;
  double smallest = 0;
  double largest = 0;
  double round_off = 0;

  // A negative eigenvalue proves that the kernel is not positive semidefinite. Without one, the
  // kernel may still be indefinite on other rows.
  bool indefinite() const { return smallest < -round_off; }
  // Returns "its Gram matrix on 256 landmarks has the eigenvalue -3.1, the largest is 40", or that
  // no eigenvalue is negative.
  std::string ToText() const;
};

// Probes the kernel on the first kMaxProbeRows of `rows`. Shape: n×p, after the input stage.
// INVALID_ARGUMENT (VALUE_NOT_FINITE, field "kernel") if a kernel value is not finite. Also the
// errors of `checkpoint`.
absl::StatusOr<DefinitenessProbe> ProbeDefiniteness(const KernelProgram& program,
                                                    ConstMatrixView<double> rows,
                                                    Checkpoint checkpoint);

// Probes a given Gram matrix, of which it reads the lower triangle. `unit` is the unit round-off of
// the values; `value_error` is their additional error, relative to √(K(x, x)·K(y, y)). Returns
// INVALID_ARGUMENT as ProbeDefiniteness does, with `remedy` as the last clause. REQUIRES: `gram` is
// square with at most kMaxProbeRows rows.
absl::StatusOr<DefinitenessProbe> ProbeGram(Matrix<double> gram, double unit,
                                            double value_error = 0,
                                            absl::string_view remedy = "rescale the kernel");

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_DEFINITENESS_H_
