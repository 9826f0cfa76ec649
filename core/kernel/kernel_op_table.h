// Properties of the operations, by their codes.
#ifndef PHIMAP_CORE_KERNEL_KERNEL_OP_TABLE_H_
#define PHIMAP_CORE_KERNEL_KERNEL_OP_TABLE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "core/kernel/kernel_parts.h"
#include "core/kernel/op/op_facts.h"

namespace phimap {

// OpFacts of an operation whose code is known only at run time.
struct KernelOpInfo {
  absl::string_view name;
  OpArity arity = OpArity::kPush;
  OpReads reads = OpReads::kNothing;
  double thirds_of_rbf = 1;
  absl::string_view (*why_invalid)(const KernelOp&) = nullptr;
};

// Returns the properties of `code`, or null if this build does not know it.
const KernelOpInfo* FindKernelOp(KernelOpCode code);

// Returns whether any of `ops` reads the operand `reads`. REQUIRES: this build knows all codes.
bool AnyReads(const std::vector<KernelOp>& ops, OpReads reads);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_KERNEL_OP_TABLE_H_
