// What kernel values in float64 err by, as they are when something is built.
#ifndef PHIMAP_CORE_KERNEL_VALUE_ERROR_H_
#define PHIMAP_CORE_KERNEL_VALUE_ERROR_H_

#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"

namespace phimap {

// K(x, x) of at most this many times what it errs by is nothing but rounding: the row is 0 in
// φ-space.
inline constexpr double kZeroRoundings = 8;

// What K(x, x) is off by at most, of each row; n×p after the input stage, or places of strings.
// `row_unit`: the unit round-off to which the rows' own numbers were rounded, u of which makes a
// row of K(x, x) = 0 one of u² times what K(x, x) is summed from.
std::vector<double> SelfErrors(const KernelProgram& program, ConstMatrixView<double> rows,
                               double row_unit = 0x1p-53);

// β: |K̂(x, y) − K(x, y)| ≤ β·√(K(x, x)·K(y, y)) for all pairs of rows, by KernelRounding. `self`:
// K(x, x) of each row, over 0. Cost: the operations of a value for each row and each group of
// nearly the same `self`, at most 49; for forms the square of the columns.
double ValueErrorOf(const KernelProgram& program, ConstMatrixView<double> rows,
                    const std::vector<double>& self);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_VALUE_ERROR_H_
