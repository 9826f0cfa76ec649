#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kWeightParameters[] = {
    {.name = "norm_power",
     .type = ParameterType::kInteger,
     .absent = Parameter::Absent::kNothing,
     .least = -16,
     .largest = 16,
     .line = "p in f(x) = ‖x‖^p"},
    {.name = "gaussian",
     .type = ParameterType::kNumber,
     .absent = Parameter::Absent::kNothing,
     .unit = "1/(unit of the inputs)²",
     .line = "a in f(x) = exp(−a‖x‖²)"},
    {.name = "constant",
     .type = ParameterType::kNumber,
     .absent = Parameter::Absent::kNothing,
     .line = "c in f(x) = c"},
};

absl::Status CheckWeight(const ParsedCall& call, ParameterValues& values) {
  int given = 0;
  for (const Parameter& parameter : kWeightParameters) given += values.Has(parameter.name) ? 1 : 0;
  if (given == 1) return absl::OkStatus();
  return ExpressionError(call.column(),
                         "weight needs exactly one of norm_power, gaussian and constant");
}

// Appends operations that raise ‖x‖² to the power p/2, without a root if p is even.
void AppendNormPower(int32_t p, std::vector<KernelOp>& ops) {
  const int32_t power = std::abs(p);
  if (power % 2 == 1) ops.push_back({.code = KernelOpCode::kSquareRoot});
  const int32_t n = power % 2 == 1 ? power : power / 2;
  if (n == 0) ops.push_back({.code = KernelOpCode::kAffine, .a = 0, .b = 1});
  if (n > 1) ops.push_back({.code = KernelOpCode::kPower, .n = n});
  if (p < 0) ops.push_back({.code = KernelOpCode::kInverse});
}

void CompileWeight(const ParameterValues& values, KernelEmitter& emitter) {
  std::vector<KernelOp> ops = {{.code = KernelOpCode::kPushProduct}};
  if (values.Has("constant")) {
    ops.push_back({.code = KernelOpCode::kAffine, .a = 0, .b = values.Number("constant")});
  } else if (values.Has("gaussian")) {
    ops.push_back({.code = KernelOpCode::kScale, .a = -values.Number("gaussian")});
    ops.push_back({.code = KernelOpCode::kExp});
  } else {
    AppendNormPower(static_cast<int32_t>(values.Integer("norm_power")), ops);
  }
  emitter.PushFactor(std::move(ops));
}

}  // namespace

extern const LeafKernel kWeightKernel;
constinit const LeafKernel kWeightKernel = {
    .name = "weight",
    .formula = "f(x)·f(y)",
    .line = "a function of each row, so that weight(…)*K is f(x)·K(x, y)·f(y)",
    .parameters = kWeightParameters,
    .check = CheckWeight,
    .compile = CompileWeight,
    .input =
        [](const ParameterValues& values) {
          return values.Has("constant") ? KernelDomain::kAnything : KernelDomain::kNumbers;
        },
    .survives_projection = [](const ParameterValues&) { return true; },
    .dimension = [](const ParameterValues&, double) { return 1.0; },
};

}  // namespace phimap
