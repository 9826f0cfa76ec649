// Evaluates kernel expressions by their formulas in long double, without compiling them.
#ifndef PHIMAP_TESTS_SUPPORT_NAIVE_KERNEL_H_
#define PHIMAP_TESTS_SUPPORT_NAIVE_KERNEL_H_

#include <cstdint>
#include <vector>

#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"

namespace phimap::testing {

// Returns K(x, y), computed from xᵀy and ‖x−y‖². REQUIRES: no unresolved parameters.
long double NaiveKernelOf(const KernelNode& node, long double product,
                          long double squared_distance);

// Returns K(x, y) of two rows by the kernel's formula.
using NaiveRow = std::vector<long double>;
long double NaiveKernelOfRows(const KernelNode& node, const NaiveRow& x, const NaiveRow& y);

template <typename T>
long double NaiveKernel(const KernelNode& node, const T* x, const T* y, int64_t cols) {
  return NaiveKernelOfRows(node, NaiveRow(x, x + cols), NaiveRow(y, y + cols));
}

// Returns K(x_i, z_j) for all rows, rounded to float64.
Matrix<double> NaiveKernelMatrix(const KernelExpression& kernel, const Matrix<double>& x,
                                 const Matrix<double>& z);

// Runs a compiled program operation by operation in long double. Returns the stack that remains,
// bottom first.
std::vector<long double> NaiveProgram(const KernelProgram& program, long double product,
                                      long double squared_distance);

// Runs a compiled program on the rows x and y, with all operands that a program can read. `offset`
// is the offset of y.
std::vector<long double> NaiveProgramOfRows(const KernelProgram& program, const NaiveRow& x,
                                            const NaiveRow& y, long double offset = 0);

// Parses `text`. Ends the test program if it is malformed.
KernelExpression MustParseKernel(const char* text);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_NAIVE_KERNEL_H_
