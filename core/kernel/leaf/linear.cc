#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kLinearParameters[] = {kColumnsParameter};

void CompileLinear(const ParameterValues& values, KernelEmitter& emitter) {
  emitter.Emit(ProductOp(values, emitter));
}

}  // namespace

extern const LeafKernel kLinearKernel;
constinit const LeafKernel kLinearKernel = {
    .name = "linear",
    .formula = "xᵀy",
    .line = "the inner product",
    .parameters = kLinearParameters,
    .compile = CompileLinear,
    .check_columns =
        [](const ParameterValues& values, int64_t columns) {
          return CheckColumnsOfChoice("linear", values, columns);
        },
    .survives_projection = SurvivesOnWholeRows,
    .is_inner_product = true,
    .dimension = CountColumns,
    .affine_power =
        [](const ParameterValues& values) {
          return IsOfWholeRows(values) ? std::optional(AffinePower{}) : std::nullopt;
        },
};

}  // namespace phimap
