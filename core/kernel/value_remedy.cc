#include "core/kernel/value_remedy.h"

#include <algorithm>
#include <vector>

namespace phimap {

bool DividesByRow(const KernelProgram& program) {
  const auto divides = [](const std::vector<KernelOp>& factor) {
    return std::any_of(factor.begin(), factor.end(),
                       [](const KernelOp& op) { return op.code == KernelOpCode::kInverse; });
  };
  return std::any_of(program.factors().begin(), program.factors().end(), divides);
}

absl::string_view ValueRemedy(const KernelProgram& program) {
  if (!DividesByRow(program)) return "standardize the inputs or rescale the kernel";
  return "the kernel divides by √K(x, x) (normalize) or by a power of the norm (weight), which is "
         "0 "
         "for a row of zeros: leave such rows out, or give the kernel in normalize() a constant, "
         "as "
         "in normalize(poly(degree=1, coef0=1)), or use cosine(), which is 0 there; if numbers are "
         "too large instead, standardize the inputs or rescale the kernel";
}

}  // namespace phimap
