// Plans, interpreted as plan.h defines them: no panels, no tiles, long double after the input
// stage.
#ifndef PHIMAP_TESTS_SUPPORT_NAIVE_PLAN_H_
#define PHIMAP_TESTS_SUPPORT_NAIVE_PLAN_H_

#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap::testing {

// Features of each row, rounded to float64. The input stage rounds to the serving type, as a plan
// defines it. REQUIRES: no remote block.
Matrix<double> NaiveTransform(const Plan& plan, const Matrix<double>& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_NAIVE_PLAN_H_
