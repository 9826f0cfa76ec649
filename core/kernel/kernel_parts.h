// Parts of a kernel program: its operations, and the tables of parts that operations refer to by
// number.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_
#define PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_

#include <vector>

#include "absl/status/status.h"
#include "core/kernel/bilinear_form.h"
#include "core/kernel/column_sum.h"
#include "core/kernel/kernel_op.h"
#include "core/kernel/string_kernel.h"

namespace phimap {

// Maximum depth of a program's stack, and maximum number of its operations. The parser admits 32
// levels of parentheses, so an expression has at most 33 levels. At each level, up to two values
// wait on the stack: a term of a sum and a factor of a product. The innermost operand comes on top.
// The depth is therefore at most 2·33 + 1.
inline constexpr int kMaxKernelStack = 67;
inline constexpr int kMaxKernelOps = 1024;
// Maximum numbers of different factors, forms and column sums. The maximum for forms applies to
// string kernels too. Operations of factors count towards kMaxKernelOps.
inline constexpr int kMaxKernelFactors = 16;
inline constexpr int kMaxKernelForms = 8;
inline constexpr int kMaxColumnSums = 8;
// Maximum of KernelProgram::form_count(): forms and column sums together, or kernels of strings.
inline constexpr int kMaxKernelFormCount = kMaxKernelForms + kMaxColumnSums;

struct KernelProgramParts {
  std::vector<KernelOp> ops;
  std::vector<std::vector<KernelOp>> factors;
  std::vector<BilinearForm> forms;
  // An operation refers to sums[m] by the number forms.size() + m.
  std::vector<ColumnSum> sums = {};
  // String kernels. A program that has them reads no products, distances or forms. Their values are
  // evaluated like the values of forms.
  std::vector<StringKernel> strings = {};
  friend bool operator==(const KernelProgramParts&, const KernelProgramParts&) = default;
};

// Returns OK, or DATA_LOSS (KERNEL_PROGRAM_INVALID) with the first limit of this file that the
// program exceeds, and the number that the program needs.
absl::Status CheckKernelSize(const KernelProgramParts& parts);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_
