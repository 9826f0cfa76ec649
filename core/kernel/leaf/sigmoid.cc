#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf/gamma_parameter.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kSigmoidParameters[] = {
    GammaOfProducts(kScaleWord),
    {.name = "coef0", .type = ParameterType::kNumber, .default_text = "0", .line = "r, the offset"},
    kColumnsParameter,
};

void CompileSigmoid(const ParameterValues& values, KernelEmitter& emitter) {
  emitter.Emit(ProductOp(values, emitter));
  emitter.Emit(
      {.code = KernelOpCode::kAffine, .a = values.Number("gamma"), .b = values.Number("coef0")});
  emitter.Emit({.code = KernelOpCode::kTanh});
}

}  // namespace

extern const LeafKernel kSigmoidKernel;
constinit const LeafKernel kSigmoidKernel = {
    .name = "sigmoid",
    .formula = "tanh(γ xᵀy + r)",
    .line =
        "the tanh similarity of neural networks; not always positive semidefinite, so "
        "builds check whether it is",
    .parameters = kSigmoidParameters,
    .check = CheckColumnChoice,
    .compile = CompileSigmoid,
    .check_columns =
        [](const ParameterValues& values, int64_t columns) {
          return CheckColumnsOfChoice("sigmoid", values, columns);
        },
    .is_definiteness_unknown = true,
    .survives_projection = SurvivesOnWholeRows,
};

}  // namespace phimap
