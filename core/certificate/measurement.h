// Measures a plan on held-out rows, for its certificate.
#ifndef PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
#define PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_

#include "absl/status/status.h"
#include "core/certificate/certificate.h"
#include "core/certificate/measurement_task.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Measures errors on held-out rows, and fills in serving_error, mean_squared_norm, kernel_error
// with its interval and bound, held_out_trace_residual, residual_share and serving_share. Adds a
// warning if the error of a pair exceeds the bound of `residual`. If there are fewer than
// kMinHeldOutRows rows, measures nothing and adds a warning.
//
// Errors: FAILED_PRECONDITION (VALUE_NOT_REPRESENTABLE) if a held-out row's features overflow;
//         those of `control`.
// Cost:   for h rows of p columns, d features and rank r, each plan transforms h rows. The rest
//         takes about 256·h·(p + d) + h·r² multiplications, because each row is compared with up to
//         256 rows. BytesOfMeasurement of memory.
absl::Status MeasureHeldOut(const MeasurementTask& task, const TileControl& control,
                            Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
