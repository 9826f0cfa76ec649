#include "core/kernel/kernel_op_table.h"

#include <algorithm>

#include "core/kernel/kernel_rounding.h"
#include "core/kernel/op/all_ops-inl.h"
#include "core/status/check.h"

namespace phimap {
namespace {

template <KernelOpCode kCode>
constexpr KernelOpInfo kInfo = {.name = OpFacts<kCode>::kName,
                                .arity = OpFacts<kCode>::kArity,
                                .reads = OpFacts<kCode>::kReads,
                                .thirds_of_rbf = OpFacts<kCode>::kThirdsOfRbf,
                                .why_invalid = OpFacts<kCode>::WhyInvalid};

RoundedValue Pop(std::vector<RoundedValue>& stack) {
  const RoundedValue top = stack.back();
  stack.pop_back();
  return top;
}

// Replaces the arguments of `op` on the stack by its result. The two results of a pair share one
// bound.
template <KernelOpCode kCode>
void RoundOp(const KernelOp& op, const RoundedOperands& operands, const RoundingUnit& unit,
             std::vector<RoundedValue>& stack) {
  using Facts = OpFacts<kCode>;
  if constexpr (Facts::kArity == OpArity::kPush) {
    stack.push_back(Facts::Round(op, operands));
  } else if constexpr (Facts::kArity == OpArity::kBinary) {
    const RoundedValue upper = Pop(stack);
    const RoundedValue lower = Pop(stack);
    stack.push_back(Facts::Round(upper, lower));
  } else {
    stack.push_back(Facts::Round(op, Pop(stack), unit));
  }
}

}  // namespace

const KernelOpInfo* FindKernelOp(KernelOpCode code) {
  switch (code) {
#define PHIMAP_INFO(NAME, CODE) \
  case KernelOpCode::NAME:      \
    return &kInfo<KernelOpCode::NAME>;
    PHIMAP_KERNEL_OPS(PHIMAP_INFO)
#undef PHIMAP_INFO
  }
  return nullptr;
}

bool AnyReads(const std::vector<KernelOp>& ops, OpReads reads) {
  return std::any_of(ops.begin(), ops.end(),
                     [&](const KernelOp& op) { return FindKernelOp(op.code)->reads == reads; });
}

RoundedValue CarryRounding(const std::vector<KernelOp>& ops, const RoundedOperands& operands,
                           double unit, double underflow) {
  const RoundingUnit rounding{unit, underflow};
  std::vector<RoundedValue> stack;
  for (const KernelOp& op : ops) {
    switch (op.code) {  // all codes are known: KernelProgram::FromParts rejects others
#define PHIMAP_ROUND(NAME, CODE)                                \
  case KernelOpCode::NAME:                                      \
    RoundOp<KernelOpCode::NAME>(op, operands, rounding, stack); \
    break;
      PHIMAP_KERNEL_OPS(PHIMAP_ROUND)
#undef PHIMAP_ROUND
    }
    if (!stack.back().is_exactly_zero()) stack.back().absolute += underflow;
  }
  PHIMAP_CHECK(stack.size() == 1);
  return stack[0];
}

}  // namespace phimap
