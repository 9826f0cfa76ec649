#include "core/kernel/kernel_program.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_op_table.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

using Code = KernelOpCode;

absl::Status BadProgram(size_t index, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason::kKernelProgramInvalid, "",
                   absl::StrCat("kernel program, operation ", index, ": ", what));
}

// The stack depth that an operation needs, and by how much it changes the depth.
struct StackEffect {
  int needs;
  int change;
};

StackEffect EffectOf(OpArity arity) {
  switch (arity) {
    case OpArity::kPush:
      return {0, 1};
    case OpArity::kUnary:
      return {1, 0};
    case OpArity::kBinary:
      return {2, -1};
    case OpArity::kPair:
      return {1, 1};
  }
  PHIMAP_CHECK(false);
}

bool LeavesPair(const KernelOp& op) { return FindKernelOp(op.code)->arity == OpArity::kPair; }

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

// Checks that the operation refers to one of `count` entries, numbered from `first`.
absl::Status CheckNumber(const KernelOp& op, size_t i, absl::string_view what, size_t first,
                         size_t count) {
  const auto least = static_cast<int64_t>(first);
  if (op.n >= least && op.n < least + static_cast<int64_t>(count)) return absl::OkStatus();
  return BadProgram(i, absl::StrCat("refers to ", what, " ", op.n, "; available: ", count));
}

absl::Status CheckOfNumbers(size_t i, const KernelProgramParts& parts) {
  return parts.strings.empty()
             ? absl::OkStatus()
             : BadProgram(i, "a program with string kernels must not read rows of numbers");
}

// Checks that the part that an operation reads exists, and that a program of strings does not read
// rows of numbers.
absl::Status CheckRead(const KernelOp& op, size_t i, size_t factors,
                       const KernelProgramParts& parts) {
  const OpReads reads = FindKernelOp(op.code)->reads;
  switch (reads) {
    case OpReads::kNothing:
    case OpReads::kProduct:  // a constant weight of strings pushes it and multiplies it by 0
      return absl::OkStatus();
    case OpReads::kFactor:
      return CheckNumber(op, i, "factor", 0, factors);
    case OpReads::kString:
      return CheckNumber(op, i, "string kernel", 0, parts.strings.size());
    case OpReads::kForm:
      PHIMAP_RETURN_IF_ERROR(CheckOfNumbers(i, parts));
      return CheckNumber(op, i, "form", 0, parts.forms.size());
    case OpReads::kColumnSum:
      PHIMAP_RETURN_IF_ERROR(CheckOfNumbers(i, parts));
      return CheckNumber(op, i, "column sum", parts.forms.size(), parts.sums.size());
    case OpReads::kSquaredDistance:
    case OpReads::kL1Distance:
    case OpReads::kShiftedProduct:
      return CheckOfNumbers(i, parts);
  }
  PHIMAP_CHECK(false);
}

// Checks operation i, which finds `depth` numbers on the stack, and updates `depth`.
absl::Status CheckOp(const std::vector<KernelOp>& ops, size_t i, size_t factors,
                     const KernelProgramParts& parts, int& depth) {
  const KernelOp& op = ops[i];
  const KernelOpInfo* const info = FindKernelOp(op.code);
  if (info == nullptr) {
    return MakeError(absl::StatusCode::kUnimplemented, reason::kKernelOperationUnknown, "",
                     absl::StrCat("kernel program, operation ", i, ": code ",
                                  static_cast<int>(op.code), " is not known to this build"));
  }
  const StackEffect effect = EffectOf(info->arity);
  if (depth < effect.needs) return BadProgram(i, "the stack is too short");
  depth += effect.change;
  if (depth > kMaxKernelStack) {
    return BadProgram(i, absl::StrCat("the stack is deeper than ", kMaxKernelStack));
  }
  if (!std::isfinite(op.a) || !std::isfinite(op.b)) {
    return BadProgram(i, "a parameter is not finite");
  }
  const absl::string_view why = info->why_invalid(op);
  if (!why.empty()) return BadProgram(i, absl::StrCat(why, ", n = ", op.n));
  if (LeavesPair(op) && i + 1 != ops.size()) {
    return BadProgram(i, "only the last operation may give a cosine and a sine");
  }
  return CheckRead(op, i, factors, parts);
}

// Checks the operations of the program or of a factor. They may refer only to the first `factors`
// factors.
absl::Status CheckOps(const std::vector<KernelOp>& ops, size_t factors,
                      const KernelProgramParts& parts) {
  if (ops.empty()) return BadProgram(0, "expected at least 1 operation, got 0");
  int depth = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(CheckOp(ops, i, factors, parts, depth));
  }
  if (depth != (LeavesPair(ops.back()) ? 2 : 1)) {
    return BadProgram(ops.size(),
                      absl::StrCat("the operations leave ", depth, " results on the stack"));
  }
  return absl::OkStatus();
}

absl::Status CheckForm(const BilinearForm& form) {
  constexpr int64_t kMaxColumns = 65536;
  if (form.columns < 1 || form.columns > kMaxColumns ||
      static_cast<int64_t>(form.numbers.size()) != form.NumberCount()) {
    return BadProgram(0, absl::StrCat("a form of ", CountOf(form.columns, "column"), " has ",
                                      CountOf(form.numbers.size(), "number")));
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
  if (!parts.strings.empty() && !(parts.forms.empty() && parts.sums.empty())) {
    return BadProgram(0, "string kernels cannot be combined with bilinear forms or column sums");
  }
  for (size_t m = 0; m < parts.strings.size(); ++m) {
    const StringKernel& kernel = parts.strings[m];
    if (std::count(parts.strings.begin(), parts.strings.end(), kernel) > 1) {
      return BadProgram(0, absl::StrCat("string kernel ", m, " occurs twice"));
    }
    const int measure = static_cast<int>(kernel.measure);
    const int unit = static_cast<int>(kernel.unit);
    if (measure < 1 || measure > 2 || unit < 1 || unit > 3 || kernel.n < 1 ||
        kernel.n > kMaxNgram) {
      return BadProgram(0, absl::StrCat("invalid string kernel: measure ", measure, ", unit ", unit,
                                        ", n ", kernel.n));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckParts(const KernelProgramParts& parts) {
  PHIMAP_RETURN_IF_ERROR(CheckKernelSize(parts));
  for (const BilinearForm& form : parts.forms) PHIMAP_RETURN_IF_ERROR(CheckForm(form));
  for (const ColumnSum& sum : parts.sums) {
    const absl::string_view why = WhyInvalid(sum);
    if (!why.empty()) return BadProgram(0, why);
  }
  PHIMAP_RETURN_IF_ERROR(CheckStringKernels(parts));
  // A factor may refer only to earlier factors.
  for (size_t i = 0; i < parts.factors.size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(CheckOps(parts.factors[i], i, parts));
    for (const KernelOp& op : parts.factors[i]) {
      if (FindKernelOp(op.code)->reads == OpReads::kShiftedProduct || LeavesPair(op)) {
        return BadProgram(i, "a factor must not read an offset or leave two numbers");
      }
    }
  }
  PHIMAP_RETURN_IF_ERROR(CheckOps(parts.ops, parts.factors.size(), parts));
  for (size_t i = 0; i < parts.ops.size() && !parts.strings.empty(); ++i) {
    // Factors of strings may push a product: a constant weight pushes it and multiplies it by 0.
    if (parts.ops[i].code == Code::kPushProduct) {
      return BadProgram(i, "a program with string kernels must not read products");
    }
  }
  return absl::OkStatus();
}

bool IsSquaredDistance(const ColumnSum& sum) {
  return sum == ColumnSum{.term = ColumnTerm::kSquaredDifference};
}

// Replaces operations that read sum number `replaced`. An operation refers to a sum by its number
// plus `forms`. Later sums move up by one.
void Replace(std::vector<KernelOp>& ops, int32_t forms, int32_t replaced) {
  for (KernelOp& op : ops) {
    if (op.code != KernelOpCode::kPushColumnSum) continue;
    if (op.n == forms + replaced) {
      op = {.code = KernelOpCode::kPushSquaredDistance};
    } else if (op.n > forms + replaced) {
      --op.n;
    }
  }
}

}  // namespace

KernelProgram::KernelProgram()
    : parts_(std::make_shared<const KernelProgramParts>(
          KernelProgramParts{.ops = {KernelOp{}}, .factors = {}, .forms = {}})) {}

absl::StatusOr<KernelProgram> KernelProgram::FromParts(KernelProgramParts parts) {
  PHIMAP_RETURN_IF_ERROR(CheckParts(parts));
  const auto anywhere = [&](OpReads reads) {
    return AnyReads(parts.ops, reads) ||
           std::any_of(parts.factors.begin(), parts.factors.end(),
                       [&](const std::vector<KernelOp>& ops) { return AnyReads(ops, reads); });
  };
  KernelProgram program;
  program.uses_offsets_ = anywhere(OpReads::kShiftedProduct);
  program.uses_l1_distances_ = anywhere(OpReads::kL1Distance);
  program.uses_norms_ = anywhere(OpReads::kSquaredDistance) || !parts.factors.empty();
  program.uses_products_ = anywhere(OpReads::kSquaredDistance) || program.uses_offsets_ ||
                           (AnyReads(parts.ops, OpReads::kProduct) && parts.strings.empty());
  program.results_ = LeavesPair(parts.ops.back()) ? 2 : 1;
  program.shape_ = ShapeOf(parts.ops);
  program.parts_ = std::make_shared<const KernelProgramParts>(std::move(parts));
  return program;
}

KernelProgram WithExpandedDistances(const KernelProgram& program) {
  const std::vector<ColumnSum>& sums = program.sums();
  const auto found = std::find_if(sums.begin(), sums.end(), IsSquaredDistance);
  if (found == sums.end()) return program;
  const auto replaced = static_cast<int32_t>(found - sums.begin());
  const auto forms = static_cast<int32_t>(program.forms().size());
  KernelProgramParts parts{.ops = program.ops(),
                           .factors = program.factors(),
                           .forms = program.forms(),
                           .sums = sums,
                           .strings = program.strings()};
  parts.sums.erase(parts.sums.begin() + replaced);
  Replace(parts.ops, forms, replaced);
  for (std::vector<KernelOp>& factor : parts.factors) Replace(factor, forms, replaced);
  absl::StatusOr<KernelProgram> expanded = KernelProgram::FromParts(std::move(parts));
  PHIMAP_CHECK(expanded.ok());
  return *std::move(expanded);
}

}  // namespace phimap
