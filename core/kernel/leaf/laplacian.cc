#include <cmath>

#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf/gamma_parameter.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kLaplacianParameters[] = {GammaOfDistances("1/(unit of the inputs)"),
                                              kScalesParameter, kColumnsParameter};

void CompileLaplacian(const ParameterValues& values, KernelEmitter& emitter) {
  emitter.Emit(AbsoluteDistanceOp(values, emitter));
  emitter.Emit({.code = KernelOpCode::kScale, .a = -values.Number("gamma")});
  emitter.Emit({.code = KernelOpCode::kExp});
}

// Each number of ω is Cauchy with scale γ.
constexpr FourierLaw kLaplacianLaw = {
    .numbers = FourierLaw::Numbers::kCauchy,
    .row_scale = [](const ParameterValues& values, uint64_t,
                    int64_t) { return values.Number("gamma"); },
    .column_factor = ColumnFactor,
};

constexpr DistanceForm kLaplacianDistance = {
    .distance = DistanceForm::Distance::kAbsolute,
    .slope = [](const ParameterValues& values, double distance) {
      return -values.Number("gamma") * std::exp(-values.Number("gamma") * distance);
    }};

}  // namespace

extern const LeafKernel kLaplacianKernel;
constinit const LeafKernel kLaplacianKernel = {
    .name = "laplacian",
    .formula = "exp(−γ ‖x−y‖₁)",
    .line = "exponential decay with the L1 distance",
    .parameters = kLaplacianParameters,
    .check = [](const ParsedCall& call,
                ParameterValues& values) { return CheckScales(call, 1, values); },
    .compile = CompileLaplacian,
    .check_columns =
        [](const ParameterValues& values, int64_t columns) {
          return CheckColumnsOfChoice("laplacian", values, columns);
        },
    .is_translation_invariant = true,
    .fourier = &kLaplacianLaw,
    .distance_form = &kLaplacianDistance,
};

}  // namespace phimap
