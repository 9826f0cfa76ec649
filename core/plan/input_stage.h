// Rows through a plan's input stage without an engine.
#ifndef PHIMAP_CORE_PLAN_INPUT_STAGE_H_
#define PHIMAP_CORE_PLAN_INPUT_STAGE_H_

#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap {

// Rows after the plan's input stage, in float64, not rounded to the serving type. Calls BLAS if the
// stage projects, and only then. REQUIRES: rows.cols() == input.columns.
Matrix<double> AfterInputStage(const InputStage& input, ConstMatrixView<double> rows);

InputStage CopyOf(const InputStage& input);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_INPUT_STAGE_H_
