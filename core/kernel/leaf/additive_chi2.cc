#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kAdditiveChi2Parameters[] = {kColumnsParameter};

}  // namespace

extern const LeafKernel kAdditiveChi2Kernel;
constinit const LeafKernel kAdditiveChi2Kernel = {
    .name = "additive_chi2",
    .formula = "Σ 2xy/(x + y), 0/0 = 0",
    .line = "similarity of histograms, for linear models of what is counted; of numbers >= 0",
    .parameters = kAdditiveChi2Parameters,
    .compile =
        [](const ParameterValues& values, KernelEmitter& emitter) {
          emitter.Emit(ColumnSumOp(ColumnTerm::kHarmonicMean, values, emitter));
        },
    .check_columns =
        [](const ParameterValues& values, int64_t columns) {
          return CheckColumnsOfChoice("additive_chi2", values, columns);
        },
    .needs_nonnegative = IsOnColumn,
};

}  // namespace phimap
