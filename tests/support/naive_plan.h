// An interpreter of plans as plan.h defines them. It uses no panels or tiles, and computes in long
// double after the input stage.
#ifndef PHIMAP_TESTS_SUPPORT_NAIVE_PLAN_H_
#define PHIMAP_TESTS_SUPPORT_NAIVE_PLAN_H_

#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap::testing {

// Returns the features of each row, rounded to float64. The input stage rounds to the serving type,
// as the definition of a plan requires. REQUIRES: no remote block.
Matrix<double> NaiveTransform(const Plan& plan, const Matrix<double>& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_NAIVE_PLAN_H_
