// Measures a plan on held-out rows, for its certificate.
#ifndef PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
#define PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_

#include "absl/status/status.h"
#include "core/certificate/certificate.h"
#include "core/certificate/measurement_task.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Fills in serving_error, mean_squared_norm, kernel_error with its interval and bound, and
// held_out_trace_residual, residual_share and serving_share. Adds a warning if a pair exceeds the
// bound of `residual`. With fewer than kMinHeldOutRows rows it measures nothing and adds a warning.
// Errors: FAILED_PRECONDITION (VALUE_NOT_REPRESENTABLE) if a held-out row's features overflow;
// whatever `control` returns. Cost: h transforms by each plan, and about 256·h·(p + d) + h·r²
// multiplications, since each row is compared with up to 256 rows; BytesOfMeasurement of memory.
absl::Status MeasureHeldOut(const MeasurementTask& task, const TileControl& control,
                            Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
