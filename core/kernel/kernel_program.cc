#include "core/kernel/kernel_program.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"

namespace phimap {
namespace {

using Code = KernelOpCode;

void Emit(const KernelNode& node, std::vector<KernelOp>& ops) {
  PHIMAP_CHECK(node.gamma_source == KernelNode::Gamma::kNumber);
  switch (node.kind) {
    case KernelNode::Kind::kLinear:
      ops.push_back({.code = Code::kPushProduct});
      return;
    case KernelNode::Kind::kPolynomial:
      ops.push_back({.code = Code::kPushProduct});
      ops.push_back({.code = Code::kAffine, .a = node.gamma, .b = node.coef0});
      if (node.degree > 1) ops.push_back({.code = Code::kPower, .n = node.degree});
      return;
    case KernelNode::Kind::kRbf:
      ops.push_back({.code = Code::kPushSquaredDistance});
      ops.push_back({.code = Code::kScale, .a = -node.gamma});
      ops.push_back({.code = Code::kExp});
      return;
    case KernelNode::Kind::kScaled:
      Emit(*node.children[0], ops);
      ops.push_back({.code = Code::kScale, .a = node.factor});
      return;
    case KernelNode::Kind::kSum:
    case KernelNode::Kind::kProduct:
      Emit(*node.children[0], ops);
      for (size_t i = 1; i < node.children.size(); ++i) {
        Emit(*node.children[i], ops);
        ops.push_back({.code = node.kind == KernelNode::Kind::kSum ? Code::kAdd : Code::kMultiply});
      }
      return;
  }
}

absl::Status BadProgram(size_t index, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, "BAD_KERNEL_PROGRAM", "",
                   absl::StrCat("kernel program, operation ", index, ": ", what));
}

// How an operation changes the depth of the stack, and what depth it needs.
struct StackEffect {
  int needs;
  int change;
};

bool Effect(Code code, StackEffect* effect) {
  switch (code) {
    case Code::kPushProduct:
    case Code::kPushSquaredDistance:
      *effect = {0, 1};
      return true;
    case Code::kAffine:
    case Code::kScale:
    case Code::kPower:
    case Code::kExp:
    case Code::kCos:
    case Code::kSin:
      *effect = {1, 0};
      return true;
    case Code::kAdd:
    case Code::kMultiply:
      *effect = {2, -1};
      return true;
  }
  return false;
}

KernelProgram::Shape ShapeOf(const std::vector<KernelOp>& ops) {
  const auto is = [&](std::initializer_list<Code> codes) {
    return std::equal(ops.begin(), ops.end(), codes.begin(), codes.end(),
                      [](const KernelOp& op, Code code) { return op.code == code; });
  };
  if (is({Code::kPushSquaredDistance, Code::kScale, Code::kExp})) return KernelProgram::Shape::kRbf;
  if (is({Code::kPushProduct, Code::kAffine, Code::kPower})) {
    return KernelProgram::Shape::kPolynomial;
  }
  return KernelProgram::Shape::kAny;
}

}  // namespace

KernelProgram KernelProgram::Compile(const KernelExpression& expression) {
  std::vector<KernelOp> ops;
  Emit(expression.root(), ops);
  absl::StatusOr<KernelProgram> program = FromOps(std::move(ops));
  PHIMAP_CHECK(program.ok());  // the parser's depth and node limits keep within the program's
  return *std::move(program);
}

absl::StatusOr<KernelProgram> KernelProgram::FromOps(std::vector<KernelOp> ops) {
  if (ops.empty() || ops.size() > kMaxKernelOps) {
    return BadProgram(
        0, absl::StrCat("expected 1 to ", kMaxKernelOps, " operations, got ", ops.size()));
  }
  int depth = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    StackEffect effect{};
    if (!Effect(ops[i].code, &effect)) {
      return MakeError(absl::StatusCode::kUnimplemented, "UNKNOWN_KERNEL_OPERATION", "",
                       absl::StrCat("kernel program, operation ", i, ": code ",
                                    static_cast<int>(ops[i].code), " is not known to this build"));
    }
    if (depth < effect.needs) return BadProgram(i, "the stack is too short");
    depth += effect.change;
    if (depth > kMaxKernelStack) {
      return BadProgram(i, absl::StrCat("the stack is deeper than ", kMaxKernelStack));
    }
    if (!std::isfinite(ops[i].a) || !std::isfinite(ops[i].b)) {
      return BadProgram(i, "a parameter is not finite");
    }
    if (ops[i].code == Code::kPower && ops[i].n < 1) {
      return BadProgram(i, absl::StrCat("power ", ops[i].n, " is not at least 1"));
    }
  }
  if (depth != 1) return BadProgram(ops.size(), absl::StrCat("ends with ", depth, " results"));
  KernelProgram program;
  program.uses_norms_ = std::any_of(ops.begin(), ops.end(), [](const KernelOp& op) {
    return op.code == Code::kPushSquaredDistance;
  });
  program.shape_ = ShapeOf(ops);
  program.ops_ = std::move(ops);
  return program;
}

}  // namespace phimap
