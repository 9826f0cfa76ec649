#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kHistogramIntersectionParameters[] = {kColumnsParameter};

}  // namespace

extern const LeafKernel kHistogramIntersectionKernel;
constinit const LeafKernel kHistogramIntersectionKernel = {
    .name = "histogram_intersection",
    .formula = "Σ min(x, y)",
    .line = "what two histograms have in common; of numbers >= 0",
    .parameters = kHistogramIntersectionParameters,
    .compile =
        [](const ParameterValues& values, KernelEmitter& emitter) {
          emitter.Emit(ColumnSumOp(ColumnTerm::kMinimum, values, emitter));
        },
    .check_columns =
        [](const ParameterValues& values, int64_t columns) {
          return CheckColumnsOfChoice("histogram_intersection", values, columns);
        },
    .needs_nonnegative = IsOnColumn,
};

}  // namespace phimap
