// Error of kernel values in float64 during a build.
#ifndef PHIMAP_CORE_KERNEL_VALUE_ERROR_H_
#define PHIMAP_CORE_KERNEL_VALUE_ERROR_H_

#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"

namespace phimap {

// A K(x, x) that is at most this many times its error is only rounding: the row is 0 in φ-space.
inline constexpr double kZeroRoundings = 8;

// Largest error of K(x, x) for each row; n×p after the input stage, or indices of strings.
// `row_unit`: the unit round-off u to which the rows' own numbers were rounded. Rounding the rows
// by u can turn K(x, x) = 0 into u² times its terms; that is counted.
std::vector<double> SelfErrors(const KernelProgram& program, ConstMatrixView<double> rows,
                               double row_unit = 0x1p-53);

// β: |K̂(x, y) − K(x, y)| ≤ β·√(K(x, x)·K(y, y)) for all pairs of rows, by KernelRounding. `self`:
// K(x, x) of each row, > 0. Cost: the operations of a value for each row and each group of nearly
// the same `self`, at most 49; for forms the square of the columns.
double ValueErrorOf(const KernelProgram& program, ConstMatrixView<double> rows,
                    const std::vector<double>& self);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_VALUE_ERROR_H_
