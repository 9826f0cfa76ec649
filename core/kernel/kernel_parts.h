// Parts of a kernel program: its operations, and the tables that they refer to by number.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_
#define PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_

#include <vector>

#include "absl/status/status.h"
#include "core/kernel/bilinear_form.h"
#include "core/kernel/column_sum.h"
#include "core/kernel/kernel_op.h"
#include "core/kernel/string_kernel.h"

namespace phimap {

// Deepest stack a program may need, and most operations it may have. The parser admits parentheses
// 32 deep; at each level a term of a sum and a factor of a product may wait, and the innermost
// operand comes on top: 2·33 + 1.
inline constexpr int kMaxKernelStack = 67;
inline constexpr int kMaxKernelOps = 1024;
// Maximum number of different factors, forms and column sums. The operations of factors count as
// the program's.
inline constexpr int kMaxKernelFactors = 16;
inline constexpr int kMaxKernelForms = 8;
inline constexpr int kMaxColumnSums = 8;
// Maximum of KernelProgram::form_count(): forms and column sums together, or kernels of strings.
inline constexpr int kMaxKernelFormCount = kMaxKernelForms + kMaxColumnSums;

struct KernelProgramParts {
  std::vector<KernelOp> ops;
  std::vector<std::vector<KernelOp>> factors;
  std::vector<BilinearForm> forms;
  // Numbered after the forms.
  std::vector<ColumnSum> sums = {};
  // Kernels of strings, which replace products, distances and forms. Their values are evaluated
  // like those of forms.
  std::vector<StringKernel> strings = {};
  friend bool operator==(const KernelProgramParts&, const KernelProgramParts&) = default;
};

// OK, or DATA_LOSS (KERNEL_PROGRAM_INVALID) with the bound above that is exceeded, and by how much.
absl::Status CheckKernelSize(const KernelProgramParts& parts);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_PARTS_H_
