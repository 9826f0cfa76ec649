#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kCosineParameters[] = {kColumnsParameter};

void CompileCosine(const ParameterValues& values, KernelEmitter& emitter) {
  const KernelOp product = ProductOp(values, emitter);
  emitter.Emit(product);
  emitter.PushFactor(
      {product, {.code = KernelOpCode::kSquareRoot}, {.code = KernelOpCode::kInverseOrZero}});
  emitter.Emit({.code = KernelOpCode::kMultiply});
}

}  // namespace

extern const LeafKernel kCosineKernel;
constinit const LeafKernel kCosineKernel = {
    .name = "cosine",
    .formula = "xᵀy/(‖x‖‖y‖); 0 where a norm is 0",
    .line = "the cosine of the angle between two rows",
    .parameters = kCosineParameters,
    .compile = CompileCosine,
    .check_columns =
        [](const ParameterValues& values, int64_t columns) {
          return CheckColumnsOfChoice("cosine", values, columns);
        },
    .survives_projection = SurvivesOnWholeRows,
    .dimension = CountColumns,
};

}  // namespace phimap
