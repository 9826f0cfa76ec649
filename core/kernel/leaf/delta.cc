#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr Parameter kDeltaParameters[] = {kColumnsParameter};

void CompileDelta(const ParameterValues& values, KernelEmitter& emitter) {
  emitter.Emit(AbsoluteDistanceOp(values, emitter));
  emitter.Emit({.code = KernelOpCode::kIsZero});
}

}  // namespace

extern const LeafKernel kDeltaKernel;
constinit const LeafKernel kDeltaKernel = {
    .name = "delta",
    .formula = "1 if x = y, else 0",
    .line =
        "whether two rows are equal after standardisation and rounding to the serving type; for "
        "columns of categories",
    .parameters = kDeltaParameters,
    .compile = CompileDelta,
    .check_columns = [](const ParameterValues& values,
                        int64_t columns) { return CheckColumnsOfChoice("delta", values, columns); },
    .is_translation_invariant = true,
    .jumps_at_equal_rows = true,
};

}  // namespace phimap
