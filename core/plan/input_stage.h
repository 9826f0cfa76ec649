// Applies a plan's input stage without an engine.
#ifndef PHIMAP_CORE_PLAN_INPUT_STAGE_H_
#define PHIMAP_CORE_PLAN_INPUT_STAGE_H_

#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap {

// Returns the rows after the plan's input stage, in float64, not rounded to the serving type. Calls
// BLAS only if the stage projects. REQUIRES: rows.cols() == input.columns.
Matrix<double> AfterInputStage(const InputStage& input, ConstMatrixView<double> rows);

InputStage CopyOf(const InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_INPUT_STAGE_H_
