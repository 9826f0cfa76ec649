// The parameters `columns` and `scales`, which kernels on rows of numbers share: the columns that a
// kernel reads, and a length scale for each of them. If neither is given, products and distances
// are those of whole rows; otherwise they are column sums.
#ifndef PHIMAP_CORE_KERNEL_LEAF_COLUMNS_H_
#define PHIMAP_CORE_KERNEL_LEAF_COLUMNS_H_

#include <optional>

#include "absl/status/status.h"
#include "core/kernel/call_syntax.h"
#include "core/kernel/kernel_parts.h"
#include "core/kernel/leaf_kernel.h"
#include "core/kernel/parameter.h"

namespace phimap {

inline constexpr Parameter kColumnsParameter = {
    .name = "columns",
    .type = ParameterType::kColumns,
    .absent = Parameter::Absent::kNothing,
    .line =
        "columns that the kernel reads, counted from 0: 0:8 is the first eight, 8 is the ninth "
        "(default: all)"};
inline constexpr Parameter kScalesParameter = {
    .name = "scales",
    .type = ParameterType::kNumbers,
    .absent = Parameter::Absent::kNothing,
    .least = 0,
    .above_least = true,
    .unit = "units of the inputs",
    .line = "a length scale for each column that the kernel reads; differences are divided by it"};

// Whether the kernel reads whole rows, without scales.
bool IsOfWholeRows(const ParameterValues& values);

// LeafKernel::check of kernels with these parameters. There must be as many scales as columns, and
// gamma must not come from the data, because such a gamma is for whole rows.
absl::Status CheckColumnChoice(const ParsedCall& call, ParameterValues& values);
// Like CheckColumnChoice, but first sets gamma to `gamma` if the call gives scales and no gamma.
absl::Status CheckScales(const ParsedCall& call, double gamma, ParameterValues& values);
// LeafKernel::check_columns of the kernel `name`.
std::optional<WrongColumns> CheckColumnsOfChoice(absl::string_view name,
                                                 const ParameterValues& values, int64_t columns);

// Return operations that push xᵀy, ‖x − y‖² and ‖x − y‖₁ over the columns, with each difference
// divided by its scale.
KernelOp ProductOp(const ParameterValues& values, KernelEmitter& emitter);
KernelOp SquaredDistanceOp(const ParameterValues& values, KernelEmitter& emitter);
// Like SquaredDistanceOp, but always computed as Σ(x_k − y_k)², never from ‖x‖², ‖y‖² and xᵀy. Its
// error is relative to ‖x − y‖² itself. For functions whose slope at ‖x − y‖² = 0 is infinite.
KernelOp SquaredDifferencesOp(const ParameterValues& values, KernelEmitter& emitter);
KernelOp AbsoluteDistanceOp(const ParameterValues& values, KernelEmitter& emitter);
// Returns an operation that pushes Σ g(x_k, y_k) over the columns.
KernelOp ColumnSumOp(ColumnTerm term, const ParameterValues& values, KernelEmitter& emitter);

// Implementations that several kernels share: LeafKernel::survives_projection, which is true if the
// kernel reads whole rows, and LeafKernel::dimension, which is the number of columns.
bool SurvivesOnWholeRows(const ParameterValues& values);
double CountColumns(const ParameterValues& values, double columns);

// Whether the kernel reads `column`. Serves as LeafKernel::needs_nonnegative of kernels of
// nonnegative numbers.
bool IsOnColumn(const ParameterValues& values, int64_t column);
// FourierLaw::column_factor: 1/scale for a column that the kernel uses, 0 for others.
double ColumnFactor(const ParameterValues& values, int64_t column);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_LEAF_COLUMNS_H_
