// Faults of kernel values in float64: bounds on their error during a build, and what to do about
// values that are not finite.
#ifndef PHIMAP_CORE_KERNEL_VALUE_ERROR_H_
#define PHIMAP_CORE_KERNEL_VALUE_ERROR_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"

namespace phimap {

// A K(x, x) of at most this many times its error is treated as a rounding error of 0. The row then
// counts as 0 in φ-space.
inline constexpr double kZeroRoundings = 8;

// Returns, for each row, the largest error of K(x, x). `rows` are n×p after the input stage, or
// indices of strings. `row_unit` is the unit round-off u to which the numbers of the rows were
// rounded. If K(x, x) is 0, rounding the row can change it to u² times the terms of its sum. The
// errors returned include that.
std::vector<double> SelfErrors(const KernelProgram& program, ConstMatrixView<double> rows,
                               double row_unit = 0x1p-53);

// Returns β such that |K̂(x, y) − K(x, y)| ≤ β·√(K(x, x)·K(y, y)) for all pairs of different rows.
// `self` holds K(x, x) of each row, which must be > 0. Cost: that of KernelRounding::LargestShare
// and, for each row and each bilinear form, the square of the number of columns.
double ValueErrorOf(const KernelProgram& program, ConstMatrixView<double> rows,
                    const std::vector<double>& self);

// Whether the program divides by a number of the row alone, which is 0 for a row of zeros:
// normalize() by √K(x, x), weight() by a power of ‖x‖.
bool DividesByRow(const KernelProgram& program);

// Returns the remedy for a kernel value that is not finite, as the last clause of an error message.
// No scaling makes a row of zeros one that can be divided by, so a program that divides has a
// remedy of its own.
absl::string_view ValueRemedy(const KernelProgram& program);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_VALUE_ERROR_H_
