#include "core/kernel/kernel_program.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Code = KernelOpCode;

// Walks an expression once; equal factors and forms share a number.
class Compiler {
 public:
  KernelProgramParts Run(const KernelNode& root) {
    Emit(root, parts_.ops);
    return std::move(parts_);
  }

 private:
  using Ops = std::vector<KernelOp>;

  template <typename Part>
  static int32_t IndexOf(std::vector<Part>& all, Part part) {
    const auto found = std::find(all.begin(), all.end(), part);
    const int32_t index = static_cast<int32_t>(found - all.begin());
    if (found == all.end()) all.push_back(std::move(part));
    return index;
  }

  void EmitFactor(Ops factor, Ops& ops) {
    ops.push_back({.code = Code::kPushFactor, .n = IndexOf(parts_.factors, std::move(factor))});
  }

  // A gamma that is still to be resolved equals no other, so that nothing that holds it is taken
  // for the same: what is counted before is at least what is counted afterwards.
  static double GammaOf(const KernelNode& node) {
    return node.gamma_source == KernelNode::Gamma::kNumber
               ? node.gamma
               : std::numeric_limits<double>::quiet_NaN();
  }

  static Ops WeightOf(const KernelNode& node) {
    const double parameter = node.weight_parameter;
    Ops ops = {{.code = Code::kPushProduct}};
    switch (node.weight) {
      case KernelNode::Weight::kConstant:
        ops.push_back({.code = Code::kAffine, .a = 0, .b = parameter});
        break;
      case KernelNode::Weight::kGaussian:
        ops.push_back({.code = Code::kScale, .a = -parameter});
        ops.push_back({.code = Code::kExp});
        break;
      case KernelNode::Weight::kNormPower: {
        // ‖x‖² to the half of p: without a root if p is even.
        const auto power = static_cast<int32_t>(std::abs(parameter));
        if (power % 2 == 1) ops.push_back({.code = Code::kSquareRoot});
        const int32_t n = power % 2 == 1 ? power : power / 2;
        if (n == 0) ops.push_back({.code = Code::kAffine, .a = 0, .b = 1});
        if (n > 1) ops.push_back({.code = Code::kPower, .n = n});
        if (parameter < 0) ops.push_back({.code = Code::kInverse});
      }
    }
    return ops;
  }

  void EmitLeaf(const KernelNode& node, Ops& ops) {
    switch (node.kind) {
      case KernelNode::Kind::kPolynomial:
        ops.push_back({.code = Code::kPushProduct});
        ops.push_back({.code = Code::kAffine, .a = GammaOf(node), .b = node.coef0});
        if (node.degree > 1) ops.push_back({.code = Code::kPower, .n = node.degree});
        return;
      case KernelNode::Kind::kSigmoid:
        ops.push_back({.code = Code::kPushProduct});
        ops.push_back({.code = Code::kAffine, .a = GammaOf(node), .b = node.coef0});
        ops.push_back({.code = Code::kTanh});
        return;
      case KernelNode::Kind::kRbf:
      case KernelNode::Kind::kLaplacian:
        ops.push_back({.code = node.kind == KernelNode::Kind::kRbf ? Code::kPushSquaredDistance
                                                                   : Code::kPushL1Distance});
        ops.push_back({.code = Code::kScale, .a = -GammaOf(node)});
        ops.push_back({.code = Code::kExp});
        return;
      case KernelNode::Kind::kDelta:
        ops.push_back({.code = Code::kPushL1Distance});
        ops.push_back({.code = Code::kIsZero});
        return;
      case KernelNode::Kind::kCosine:
        ops.push_back({.code = Code::kPushProduct});
        EmitFactor({{.code = Code::kPushProduct},
                    {.code = Code::kSquareRoot},
                    {.code = Code::kInverseOrZero}},
                   ops);
        ops.push_back({.code = Code::kMultiply});
        return;
      case KernelNode::Kind::kBilinear:
        ops.push_back({.code = Code::kPushForm, .n = IndexOf(parts_.forms, *node.form)});
        return;
      case KernelNode::Kind::kSpectrum:
      case KernelNode::Kind::kJaccard: {
        const StringKernel kernel{.measure = node.kind == KernelNode::Kind::kSpectrum
                                                 ? StringMeasure::kSpectrum
                                                 : StringMeasure::kJaccard,
                                  .unit = node.unit,
                                  .n = node.ngram};
        ops.push_back({.code = Code::kPushString, .n = IndexOf(parts_.strings, kernel)});
        return;
      }
      case KernelNode::Kind::kWeight:
        return EmitFactor(WeightOf(node), ops);
      default:
        ops.push_back({.code = Code::kPushProduct});
        return;
    }
  }

  void Emit(const KernelNode& node, Ops& ops) {
    if (node.children.empty()) return EmitLeaf(node, ops);
    if (node.kind == KernelNode::Kind::kNormalized) return EmitNormalized(node, ops);
    Emit(*node.children[0], ops);
    if (node.kind == KernelNode::Kind::kScaled) {
      ops.push_back({.code = Code::kScale, .a = node.factor});
    } else if (node.kind == KernelNode::Kind::kExp) {
      ops.push_back({.code = Code::kExp});
    }
    const bool sum = node.kind == KernelNode::Kind::kSum;
    for (size_t i = 1; i < node.children.size(); ++i) {
      Emit(*node.children[i], ops);
      ops.push_back({.code = sum ? Code::kAdd : Code::kMultiply});
    }
  }

  // K(x, y), K(x, x) and K(y, y) are the same operations: they are made once, so that nested ones
  // cost what they are long and not two to the power of their depth.
  void EmitNormalized(const KernelNode& node, Ops& ops) {
    Ops inner;
    Emit(*node.children[0], inner);
    ops.insert(ops.end(), inner.begin(), inner.end());
    // A short string has no n-grams: nothing is wrong with it, and φ of it is 0.
    const bool of_strings = std::any_of(inner.begin(), inner.end(), [](const KernelOp& op) {
      return op.code == Code::kPushString;
    });
    inner.push_back({.code = Code::kSquareRoot});
    inner.push_back({.code = of_strings ? Code::kInverseOrZero : Code::kInverse});
    EmitFactor(std::move(inner), ops);
    ops.push_back({.code = Code::kMultiply});
  }

  KernelProgramParts parts_;
};

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
    case Code::kPushL1Distance:
    case Code::kPushForm:
    case Code::kPushString:
    case Code::kPushFactor:
    case Code::kPushShiftedProduct:
      *effect = {0, 1};
      return true;
    case Code::kCosSinTurns:
      *effect = {1, 1};
      return true;
    case Code::kAffine:
    case Code::kScale:
    case Code::kPower:
    case Code::kExp:
    case Code::kCos:
    case Code::kSin:
    case Code::kCosTurns:
    case Code::kTanh:
    case Code::kIsZero:
    case Code::kSquareRoot:
    case Code::kInverse:
    case Code::kInverseOrZero:
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
  if (is({Code::kPushShiftedProduct, Code::kCosTurns})) return KernelProgram::Shape::kPhase;
  if (is({Code::kPushProduct, Code::kCosSinTurns})) return KernelProgram::Shape::kSinCos;
  return KernelProgram::Shape::kAny;
}

// What an operation names is there; and of strings nothing else is read.
absl::Status CheckNamed(const KernelOp& op, size_t i, size_t factors,
                        const KernelProgramParts& parts) {
  const bool of_numbers = op.code == Code::kPushSquaredDistance || op.code == Code::kPushForm ||
                          op.code == Code::kPushL1Distance || op.code == Code::kPushShiftedProduct;
  if (of_numbers && !parts.strings.empty()) {
    return BadProgram(i, "a kernel of strings reads rows of numbers");
  }
  const bool names_factor = op.code == Code::kPushFactor;
  const bool names_string = op.code == Code::kPushString;
  if (!names_factor && !names_string && op.code != Code::kPushForm) return absl::OkStatus();
  const size_t count = names_factor   ? factors
                       : names_string ? parts.strings.size()
                                      : parts.forms.size();
  if (op.n >= 0 && op.n < static_cast<int64_t>(count)) return absl::OkStatus();
  return BadProgram(i, absl::StrCat(names_factor   ? "factor "
                                    : names_string ? "string kernel "
                                                   : "form ",
                                    op.n, " of ", count));
}

// One list of operations, of the program or of a factor, which may name `factors` factors.
absl::Status CheckOps(const std::vector<KernelOp>& ops, size_t factors,
                      const KernelProgramParts& parts) {
  if (ops.empty()) return BadProgram(0, "expected at least 1 operation, got 0");
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
    if (ops[i].code == Code::kCosSinTurns && i + 1 != ops.size()) {
      return BadProgram(i, "a pair of cosine and sine is not the last operation");
    }
    PHIMAP_RETURN_IF_ERROR(CheckNamed(ops[i], i, factors, parts));
  }
  if (depth != (ops.back().code == Code::kCosSinTurns ? 2 : 1)) {
    return BadProgram(ops.size(), absl::StrCat("ends with ", depth, " results"));
  }
  return absl::OkStatus();
}

absl::Status CheckForm(const BilinearForm& form) {
  constexpr int64_t kMaxColumns = 65536;
  if (form.columns < 1 || form.columns > kMaxColumns ||
      static_cast<int64_t>(form.numbers.size()) != form.NumberCount()) {
    return BadProgram(0, absl::StrCat("a form of ", form.columns, " columns has ",
                                      form.numbers.size(), " numbers"));
  }
  for (const double number : form.numbers) {
    if (!std::isfinite(number)) return BadProgram(0, "a number of a form is not finite");
  }
  for (int64_t i = 0; !form.diagonal && i < form.columns; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      if (form.numbers[i * form.columns + j] != form.numbers[j * form.columns + i]) {
        return BadProgram(0, "a form is not symmetric");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStringKernels(const KernelProgramParts& parts) {
  if (!parts.strings.empty() && !parts.forms.empty()) {
    return BadProgram(0, "kernels of strings beside bilinear forms");
  }
  for (size_t m = 0; m < parts.strings.size(); ++m) {
    const StringKernel& kernel = parts.strings[m];
    if (std::count(parts.strings.begin(), parts.strings.end(), kernel) > 1) {
      return BadProgram(0, absl::StrCat("string kernel ", m, " is there twice"));
    }
    const int measure = static_cast<int>(kernel.measure);
    const int unit = static_cast<int>(kernel.unit);
    if (measure < 1 || measure > 2 || unit < 1 || unit > 3 || kernel.n < 1 ||
        kernel.n > kMaxNgram) {
      return BadProgram(0, absl::StrCat("a string kernel of measure ", measure, ", unit ", unit,
                                        ", n ", kernel.n));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCount(absl::string_view what, size_t count, int limit) {
  if (count <= static_cast<size_t>(limit)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kDataLoss, "BAD_KERNEL_PROGRAM", "",
      absl::StrCat("the kernel needs ", count, " ", what, ", at most ", limit, " are allowed"));
}

absl::Status CheckSize(const KernelProgramParts& parts) {
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("different weights and norms", parts.factors.size(), kMaxKernelFactors));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("different bilinear forms", parts.forms.size(), kMaxKernelForms));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("different kernels of strings", parts.strings.size(), kMaxKernelForms));
  size_t ops = parts.ops.size();
  for (const std::vector<KernelOp>& factor : parts.factors) ops += factor.size();
  return CheckCount("operations", ops, kMaxKernelOps);
}

absl::Status CheckParts(const KernelProgramParts& parts) {
  PHIMAP_RETURN_IF_ERROR(CheckSize(parts));
  for (const BilinearForm& form : parts.forms) PHIMAP_RETURN_IF_ERROR(CheckForm(form));
  PHIMAP_RETURN_IF_ERROR(CheckStringKernels(parts));
  // A factor may name those before it.
  for (size_t i = 0; i < parts.factors.size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(CheckOps(parts.factors[i], i, parts));
    for (const KernelOp& op : parts.factors[i]) {
      if (op.code == Code::kPushShiftedProduct || op.code == Code::kCosSinTurns) {
        return BadProgram(i, "a factor reads an offset or leaves two numbers");
      }
    }
  }
  PHIMAP_RETURN_IF_ERROR(CheckOps(parts.ops, parts.factors.size(), parts));
  for (size_t i = 0; i < parts.ops.size() && !parts.strings.empty(); ++i) {
    // In a factor it stands for a norm, of which a constant weight makes nothing.
    if (parts.ops[i].code == Code::kPushProduct) {
      return BadProgram(i, "a kernel of strings reads products");
    }
  }
  return absl::OkStatus();
}

}  // namespace

KernelProgram::KernelProgram()
    : parts_(std::make_shared<const KernelProgramParts>(
          KernelProgramParts{.ops = {KernelOp{}}, .factors = {}, .forms = {}})) {}

KernelProgram KernelProgram::Compile(const KernelExpression& expression) {
  PHIMAP_CHECK(!expression.NeedsScale() && !expression.NeedsMedian());
  absl::StatusOr<KernelProgram> program = FromParts(Compiler().Run(expression.root()));
  PHIMAP_CHECK(program.ok());  // the parser asked CheckCompiles
  return program->Over(expression.strings());
}

absl::Status KernelProgram::CheckCompiles(const KernelExpression& expression) {
  return CheckSize(Compiler().Run(expression.root()));
}

absl::StatusOr<KernelProgram> KernelProgram::FromParts(KernelProgramParts parts) {
  PHIMAP_RETURN_IF_ERROR(CheckParts(parts));
  const auto anywhere = [&](Code code) {
    const auto in = [&](const std::vector<KernelOp>& ops) {
      return std::any_of(ops.begin(), ops.end(),
                         [&](const KernelOp& op) { return op.code == code; });
    };
    return in(parts.ops) || std::any_of(parts.factors.begin(), parts.factors.end(), in);
  };
  KernelProgram program;
  program.uses_norms_ = anywhere(Code::kPushSquaredDistance) || !parts.factors.empty();
  program.uses_products_ = anywhere(Code::kPushSquaredDistance) ||
                           std::any_of(parts.ops.begin(), parts.ops.end(), [&](const KernelOp& op) {
                             return (op.code == Code::kPushProduct && parts.strings.empty()) ||
                                    op.code == Code::kPushShiftedProduct;
                           });
  program.uses_l1_distances_ = anywhere(Code::kPushL1Distance);
  program.uses_offsets_ = anywhere(Code::kPushShiftedProduct);
  program.results_ = parts.ops.back().code == Code::kCosSinTurns ? 2 : 1;
  program.shape_ = ShapeOf(parts.ops);
  program.parts_ = std::make_shared<const KernelProgramParts>(std::move(parts));
  return program;
}

}  // namespace phimap
