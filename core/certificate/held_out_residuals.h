// The residuals ρ(x) = K(x, x) − ‖F(x)‖² of held-out rows.
#ifndef PHIMAP_CORE_CERTIFICATE_HELD_OUT_RESIDUALS_H_
#define PHIMAP_CORE_CERTIFICATE_HELD_OUT_RESIDUALS_H_

#include <vector>

#include "absl/status/status.h"
#include "core/certificate/certificate.h"
#include "core/certificate/held_out_features.h"
#include "core/certificate/measurement_task.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Returns ρ(x) + a(x) of each row, the residual and its allowance for rounding as the server would
// compute them. The sums bound kernel errors (core/plan/residual.h). REQUIRES: the task has a
// residual.
std::vector<double> ResidualBounds(const MeasurementTask& task, const Matrix<double>& served);

// Measures how much of the held-out rows lies outside of the landmarks' span. The residual of a row
// x is ρ(x) = K(x, x) − ‖L⁻¹ k_r(x)‖². L is the Cholesky factor of the r landmarks' Gram matrix,
// and k_r(x) holds the kernel values of x with the landmarks. Computes Σ ρ(x)/Σ K(x, x) and the
// quantiles of ρ(x)/K(x, x).
//
// For F2, the share of a row is at least |K(x, x) − ‖F(x)‖²|/K(x, x), where F(x) are the features
// as served. ‖F(x)‖ can be too small because numbers vanish in float32, or too large because of
// rounding.
//
// `x`: rows after the kernel's input stage. Fills in held_out_trace_residual, residual_share and
// serving_share. Errors: those of `control`.
absl::Status MeasureResiduals(const MeasurementTask& task, const Matrix<double>& x,
                              const FeatureLengths& lengths, const TileControl& control,
                              Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_HELD_OUT_RESIDUALS_H_
