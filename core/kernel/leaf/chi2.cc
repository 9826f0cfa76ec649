#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kChi2Parameters[] = {
    {.name = "gamma",
     .type = ParameterType::kNumber,
     .default_text = "1",
     .least = 0,
     .above_least = true,
     .unit = "1/(unit of the inputs)",
     .line = "γ, factor of the distance"},
    kColumnsParameter,
};

void CompileChi2(const ParameterValues& values, KernelEmitter& emitter) {
  emitter.Emit(ColumnSumOp(ColumnTerm::kChiSquare, values, emitter));
  emitter.Emit({.code = KernelOpCode::kScale, .a = -values.Number("gamma")});
  emitter.Emit({.code = KernelOpCode::kExp});
}

}  // namespace

extern const LeafKernel kChi2Kernel;
constinit const LeafKernel kChi2Kernel = {
    .name = "chi2",
    .formula = "exp(−γ Σ (x−y)²/(x+y)), 0/0 = 0",
    .line = "the exponential χ² kernel of histograms; of numbers >= 0",
    .parameters = kChi2Parameters,
    .compile = CompileChi2,
    .check_columns = [](const ParameterValues& values,
                        int64_t columns) { return CheckColumnsOfChoice("chi2", values, columns); },
    .needs_nonnegative = IsOnColumn,
};

}  // namespace phimap
