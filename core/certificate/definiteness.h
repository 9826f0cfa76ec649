// Tests whether an unproven kernel is positive semidefinite on given rows.
#ifndef PHIMAP_CORE_CERTIFICATE_DEFINITENESS_H_
#define PHIMAP_CORE_CERTIFICATE_DEFINITENESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Maximum number of rows that are probed: the eigenvalues of 256 take about 10 ms.
inline constexpr int64_t kMaxProbeRows = 256;

// The extreme eigenvalues of a Gram matrix, and how far below 0 round-off can put the smallest.
struct DefinitenessProbe {
  int64_t rows = 0;
  double smallest = 0;
  double largest = 0;
  double round_off = 0;

  // Whether a negative eigenvalue proves that the kernel is not positive semidefinite. The absence
  // of one proves nothing about other rows.
  bool indefinite() const { return smallest < -round_off; }
  // Returns "its Gram matrix on 256 landmarks has the eigenvalue -3.1, the largest is 40", or that
  // no eigenvalue is negative.
  std::string ToText() const;
};

// Probes the first kMaxProbeRows of `rows`, n×p after the input stage. INVALID_ARGUMENT
// (VALUE_NOT_FINITE, field "kernel") if a kernel value is not finite.
absl::StatusOr<DefinitenessProbe> ProbeDefiniteness(const KernelProgram& program,
                                                    ConstMatrixView<double> rows,
                                                    Checkpoint checkpoint);

// Probes the lower triangle of a given Gram matrix; `unit` is the round-off of its values, and β =
// `value_error` their further error, over √(K(x, x)·K(y, y)). REQUIRES: as many rows as columns, at
// most kMaxProbeRows.
absl::StatusOr<DefinitenessProbe> ProbeGram(Matrix<double> gram, double unit,
                                            double value_error = 0);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_DEFINITENESS_H_
