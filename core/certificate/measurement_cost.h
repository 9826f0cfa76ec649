// Forecasts the cost of a measurement on held-out rows.
#ifndef PHIMAP_CORE_CERTIFICATE_MEASUREMENT_COST_H_
#define PHIMAP_CORE_CERTIFICATE_MEASUREMENT_COST_H_

#include <cstdint>
#include <optional>

#include "core/kernel/kernel_work.h"
#include "core/linalg/work.h"

namespace phimap {

// Sizes of a mapping to be measured, for forecasts.
struct MeasurementShape {
  // Number of held-out rows, and of their columns.
  int64_t rows = 0;
  int64_t columns = 0;
  // The plan: number of features, work per row, and how many numbers its matrices have.
  int64_t output_columns = 0;
  Work row;
  int64_t plan_numbers = 0;
  // Work of one kernel value. Unset if the kernel error is not measured.
  std::optional<ValueWork> value;
  // centre_landmarks is the number of landmarks on which the kernel is centred, or 0 if it is not
  // centred. Each row is compared with each of these landmarks. If centre_gram is true, the
  // landmarks are also compared with each other.
  int64_t centre_landmarks = 0;
  bool centre_gram = false;
  // Rank of the factor with which the residuals of rows are computed. 0 if there is no factor, or
  // if the features are the coordinates of the projection, which give the residuals directly.
  int64_t rank = 0;
  // Whether the plan is served in float32, which is then compared with float64.
  bool is_float32 = false;
};

// WorkOfMeasurement returns the work of MeasureHeldOut, BytesOfMeasurement its peak memory in
// bytes.
Work WorkOfMeasurement(const MeasurementShape& shape);
int64_t BytesOfMeasurement(const MeasurementShape& shape, int threads);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_COST_H_
