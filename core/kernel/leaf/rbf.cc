#include <cmath>

#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf/gamma_parameter.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kRbfParameters[] = {GammaOfDistances("1/(unit of the inputs)²"),
                                        kScalesParameter, kColumnsParameter};

void CompileRbf(const ParameterValues& values, KernelEmitter& emitter) {
  emitter.Emit(SquaredDistanceOp(values, emitter));
  emitter.Emit({.code = KernelOpCode::kScale, .a = -values.Number("gamma")});
  emitter.Emit({.code = KernelOpCode::kExp});
}

// ω ~ N(0, 2γI).
constexpr FourierLaw kRbfLaw = {
    .numbers = FourierLaw::Numbers::kNormal,
    .row_scale = [](const ParameterValues& values, uint64_t,
                    int64_t) { return std::sqrt(2.0) * std::sqrt(values.Number("gamma")); },
    .rbf_gamma = [](const ParameterValues& values) { return values.Number("gamma"); },
    .column_factor = ColumnFactor,
};

constexpr DistanceForm kRbfDistance = {.slope = [](const ParameterValues& values, double distance) {
  return -values.Number("gamma") * std::exp(-values.Number("gamma") * distance);
}};

}  // namespace

extern const LeafKernel kRbfKernel;
constinit const LeafKernel kRbfKernel = {
    .name = "rbf",
    .formula = "exp(−γ ‖x−y‖²)",
    .line = "the Gaussian kernel",
    .parameters = kRbfParameters,
    .check =
        [](const ParsedCall& call, ParameterValues& values) {
          return CheckScales(call, 0.5, values);  // at gamma = 0.5, scales are standard deviations
        },
    .compile = CompileRbf,
    .check_columns = [](const ParameterValues& values,
                        int64_t columns) { return CheckColumnsOfChoice("rbf", values, columns); },
    .is_translation_invariant = true,
    .survives_projection = SurvivesOnWholeRows,
    .fourier = &kRbfLaw,
    .distance_form = &kRbfDistance,
};

}  // namespace phimap
