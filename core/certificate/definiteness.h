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

// Most rows that are looked at: the eigenvalues of 256 take about 10 ms.
inline constexpr int64_t kMaxProbeRows = 256;

// The extreme eigenvalues of a Gram matrix, and how far below 0 round-off can put the smallest.
struct DefinitenessProbe {
  int64_t rows = 0;
  double smallest = 0;
  double largest = 0;
  double round_off = 0;

  // One negative eigenvalue proves that the kernel is not positive semidefinite; none proves
  // nothing about other rows.
  bool indefinite() const { return smallest < -round_off; }
  // "its Gram matrix on 256 landmarks has the eigenvalue -3.1, the largest is 40", or that none is
  // negative.
  std::string ToText() const;
};

// Looks at the first kMaxProbeRows of `rows`, n×p after the input stage. INVALID_ARGUMENT
// (VALUE_NOT_FINITE, field "kernel") when a kernel value is not a finite number.
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
