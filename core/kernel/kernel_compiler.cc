// Compiles expressions into programs.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/kernel_parts.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/leaf_kernel.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Code = KernelOpCode;
using Ops = std::vector<KernelOp>;

// Builds the parts of a program in one walk over an expression.
class Compiler {
 public:
  KernelProgramParts Run(const KernelNode& root) {
    Emit(root, parts_.ops);
    NumberSumsAfterForms(parts_.ops);
    for (Ops& factor : parts_.factors) NumberSumsAfterForms(factor);
    return std::move(parts_);
  }

 private:
  void Emit(const KernelNode& node, Ops& ops) {
    switch (node.kind) {
      case KernelNode::Kind::kLeaf: {
        KernelEmitter emitter(parts_, ops);
        return node.leaf->compile(node.values, emitter);
      }
      case KernelNode::Kind::kScaled:
        Emit(*node.children[0], ops);
        return ops.push_back({.code = Code::kScale, .a = node.factor});
      case KernelNode::Kind::kExp:
        Emit(*node.children[0], ops);
        return ops.push_back({.code = Code::kExp});
      case KernelNode::Kind::kSum:
        return EmitFold(node, Code::kAdd, ops);
      case KernelNode::Kind::kProduct:
        return EmitFold(node, Code::kMultiply, ops);
      case KernelNode::Kind::kNormalized:
        return EmitNormalized(node, ops);
    }
    PHIMAP_CHECK(false);
  }

  // Adds the number of forms to the index of each column sum, because programs number column sums
  // after forms. Runs last, when the number of forms is known.
  void NumberSumsAfterForms(Ops& ops) const {
    for (KernelOp& op : ops) {
      if (op.code == Code::kPushColumnSum) op.n += static_cast<int32_t>(parts_.forms.size());
    }
  }

  void EmitFold(const KernelNode& node, Code code, Ops& ops) {
    Emit(*node.children[0], ops);
    for (size_t i = 1; i < node.children.size(); ++i) {
      Emit(*node.children[i], ops);
      ops.push_back({.code = code});
    }
  }

  // Emits the operations of the argument once, because they are the same for K(x, y), K(x, x) and
  // K(y, y). Emitting them for each would take time exponential in the depth of nesting.
  void EmitNormalized(const KernelNode& node, Ops& ops) {
    Ops inner;
    Emit(*node.children[0], inner);
    ops.insert(ops.end(), inner.begin(), inner.end());
    // A string that is too short for an n-gram is valid, and its φ is 0.
    const bool of_strings = std::any_of(inner.begin(), inner.end(), [](const KernelOp& op) {
      return op.code == Code::kPushString;
    });
    inner.push_back({.code = Code::kSquareRoot});
    inner.push_back({.code = of_strings ? Code::kInverseOrZero : Code::kInverse});
    KernelEmitter(parts_, ops).PushFactor(std::move(inner));
    ops.push_back({.code = Code::kMultiply});
  }

  KernelProgramParts parts_;
};

bool AnyInfinite(const Ops& ops) {
  return std::any_of(ops.begin(), ops.end(),
                     [](const KernelOp& op) { return std::isinf(op.a) || std::isinf(op.b); });
}

// Whether a number of the program is beyond float64. A NaN is a gamma that is not resolved yet.
bool AnyInfinite(const KernelProgramParts& parts) {
  return AnyInfinite(parts.ops) ||
         std::any_of(parts.factors.begin(), parts.factors.end(),
                     [](const Ops& factor) { return AnyInfinite(factor); }) ||
         std::any_of(parts.sums.begin(), parts.sums.end(), [](const ColumnSum& sum) {
           return std::any_of(sum.weights.begin(), sum.weights.end(),
                              [](double weight) { return std::isinf(weight); });
         });
}

// Each parameter is finite, but what a leaf kernel computes from its parameters, such as
// 1/length_scale², may not be.
absl::Status CheckLeaves(const KernelNode& node) {
  if (node.kind == KernelNode::Kind::kLeaf && AnyInfinite(Compiler().Run(node))) {
    return ExpressionError(
        node.column,
        absl::StrCat("the parameters of ", node.leaf->name,
                     " give a number beyond the range of float64, such as the inverse square of a "
                     "length below 1e-154; expected less extreme parameters"));
  }
  for (const auto& child : node.children) PHIMAP_RETURN_IF_ERROR(CheckLeaves(*child));
  return absl::OkStatus();
}

}  // namespace

KernelProgram KernelProgram::Compile(const KernelExpression& expression) {
  PHIMAP_CHECK(!expression.NeedsScale() && !expression.NeedsMedian());
  absl::StatusOr<KernelProgram> program = FromParts(Compiler().Run(expression.root()));
  PHIMAP_CHECK(program.ok());  // the parser called CheckCompiles
  return program->Over(expression.strings());
}

absl::Status KernelProgram::CheckCompiles(const KernelExpression& expression) {
  PHIMAP_RETURN_IF_ERROR(CheckKernelSize(Compiler().Run(expression.root())));
  return CheckLeaves(expression.root());
}

}  // namespace phimap
