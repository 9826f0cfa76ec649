// Measures a plan on held-out rows, for its certificate.
#ifndef PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
#define PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_

#include "absl/status/status.h"
#include "core/certificate/certificate.h"
#include "core/certificate/measurement_task.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Fills in serving_error, mean_squared_norm, kernel_error with its interval and bound, and
// held_out_trace_residual with residual_share; a pair that breaks the bound of `residual` adds a
// warning. Under
// kMinHeldOutRows rows it measures nothing and adds a warning. Errors: FAILED_PRECONDITION
// (VALUE_NOT_REPRESENTABLE) when a held-out row's features overflow the serving type. Cost: h
// transforms in either type, h²(p + d) + h r² multiplications; h² · 8 bytes in tiles of 256 rows.
absl::Status MeasureHeldOut(const MeasurementTask& task, const TileControl& control,
                            Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_H_
