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

// Returns ρ of each row as a server would answer it. REQUIRES: the task has a residual.
std::vector<double> ServedResiduals(const MeasurementTask& task, const Matrix<double>& served);

// Measures the part of held-out rows outside the landmarks' span, ρ(x) = K(x, x) − ‖L⁻¹ k_r(x)‖²: Σ
// ρ(x)/Σ K(x, x), and the quantiles of ρ(x)/K(x, x).
//
// For F2 a row's share is computed from the features as served, which may also be too long: numbers
// too small for float32 vanish, and others are only rounding. `x`: rows after the kernel's input
// stage. Fills in held_out_trace_residual, residual_share and serving_share. Errors: those of
// `control`.
absl::Status MeasureResiduals(const MeasurementTask& task, const Matrix<double>& x,
                              const FeatureLengths& lengths, const TileControl& control,
                              Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_HELD_OUT_RESIDUALS_H_
