// The parameters `columns` and `scales`, which kernels of rows of numbers share: the columns that a
// kernel uses, and the unit of each. A kernel with neither reads products and distances of whole
// rows; otherwise it reads column sums.
#ifndef PHIMAP_CORE_KERNEL_LEAF_COLUMNS_H_
#define PHIMAP_CORE_KERNEL_LEAF_COLUMNS_H_

#include <optional>

#include "absl/status/status.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/kernel_emitter.h"
#include "core/kernel/leaf_kernel.h"
#include "core/kernel/parameter.h"

namespace phimap {

inline constexpr Parameter kColumnsParameter = {
    .name = "columns",
    .type = ParameterType::kColumns,
    .absent = Parameter::Absent::kNothing,
    .line =
        "the columns it is on, counted from 0: 0:8 are the first eight, 8 is the ninth; all "
        "unless given"};
inline constexpr Parameter kScalesParameter = {
    .name = "scales",
    .type = ParameterType::kNumbers,
    .absent = Parameter::Absent::kNothing,
    .least = 0,
    .above_least = true,
    .unit = "units of the inputs",
    .line = "a length for each column that it is on, by which differences are divided"};

// Whether the kernel is evaluated on whole rows, without selection or scaling of columns.
bool IsOfWholeRows(const ParameterValues& values);

// LeafKernel::check of kernels with these parameters: there must be as many scales as columns, and
// gamma may not come from the data, because that would be the gamma of whole rows.
absl::Status CheckColumnChoice(const ParsedCall& call, ParameterValues& values);
// As CheckColumnChoice; gamma defaults to `gamma` if scales are given.
absl::Status CheckScales(const ParsedCall& call, double gamma, ParameterValues& values);
// LeafKernel::check_columns of `name`.
std::optional<WrongColumns> CheckColumnsOfChoice(absl::string_view name,
                                                 const ParameterValues& values, int64_t columns);

// Operations that push xᵀy, ‖x − y‖² and ‖x − y‖₁ over the chosen columns, each difference divided
// by its scale.
KernelOp ProductOp(const ParameterValues& values, KernelEmitter& emitter);
KernelOp SquaredDistanceOp(const ParameterValues& values, KernelEmitter& emitter);
KernelOp AbsoluteDistanceOp(const ParameterValues& values, KernelEmitter& emitter);
// Σ g(x_k, y_k) over the columns.
KernelOp ColumnSumOp(ColumnTerm term, const ParameterValues& values, KernelEmitter& emitter);

// LeafKernel::survives_projection and ::dimension for kernels with these parameters.
bool SurvivesOnWholeRows(const ParameterValues& values);
double CountColumns(const ParameterValues& values, double columns);

// Whether the kernel uses that column. Serves as LeafKernel::needs_nonnegative.
bool IsOnColumn(const ParameterValues& values, int64_t column);
// FourierLaw::column_factor: 1/scale for a column that the kernel uses, 0 for others.
double ColumnFactor(const ParameterValues& values, int64_t column);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_LEAF_COLUMNS_H_
