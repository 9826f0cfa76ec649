#include <cmath>

#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kRationalQuadraticParameters[] = {
    {.name = "alpha",
     .type = ParameterType::kNumber,
     .default_text = "1",
     .least = 0,
     .above_least = true,
     .line = "α, the shape of the mixture; a large α approaches rbf"},
    {.name = "length_scale",
     .type = ParameterType::kNumber,
     .default_text = "1",
     .least = 0,
     .above_least = true,
     .unit = "units of the inputs",
     .line = "ℓ, the distance over which similarity decays"},
    kScalesParameter,
    kColumnsParameter,
};

void CompileRationalQuadratic(const ParameterValues& values, KernelEmitter& emitter) {
  const double alpha = values.Number("alpha");
  const double length = values.Number("length_scale");
  emitter.Emit(SquaredDistanceOp(values, emitter));
  emitter.Emit({.code = KernelOpCode::kScale, .a = 0.5 / alpha / length / length});
  emitter.Emit({.code = KernelOpCode::kLogOnePlus});
  emitter.Emit({.code = KernelOpCode::kScale, .a = -alpha});
  emitter.Emit({.code = KernelOpCode::kExp});
}

constexpr DistanceForm kRationalQuadraticDistance = {
    .slope = [](const ParameterValues& values, double distance) {
      const double alpha = values.Number("alpha");
      const double rate = 0.5 / values.Number("length_scale") / values.Number("length_scale");
      return -rate * std::pow(1 + rate / alpha * distance, -alpha - 1);
    }};

}  // namespace

extern const LeafKernel kRationalQuadraticKernel;
constinit const LeafKernel kRationalQuadraticKernel = {
    .name = "rational_quadratic",
    .formula = "(1 + ‖x−y‖²/(2αℓ²))^−α",
    .line = "a mixture of rbf kernels with different length scales",
    .parameters = kRationalQuadraticParameters,
    .check = CheckColumnChoice,
    .compile = CompileRationalQuadratic,
    .check_columns =
        [](const ParameterValues& values, int64_t columns) {
          return CheckColumnsOfChoice("rational_quadratic", values, columns);
        },
    .is_translation_invariant = true,
    .survives_projection = SurvivesOnWholeRows,
    .distance_form = &kRationalQuadraticDistance,
};

}  // namespace phimap
