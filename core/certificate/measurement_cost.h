// Forecasts the cost of a measurement on held-out rows.
#ifndef PHIMAP_CORE_CERTIFICATE_MEASUREMENT_COST_H_
#define PHIMAP_CORE_CERTIFICATE_MEASUREMENT_COST_H_

#include <cstdint>
#include <optional>

#include "core/kernel/kernel_work.h"
#include "core/linalg/work.h"

namespace phimap {

// Sizes of a mapping that is to be measured, for forecasts.
struct MeasurementShape {
  // Held-out rows and their columns.
  int64_t rows = 0;
  int64_t columns = 0;
  // Figures of the plan: its features, their count, the work of a row, and the numbers in its
  // matrices.
  int64_t output_columns = 0;
  Work row;
  int64_t plan_numbers = 0;
  // Work of one kernel value; nullopt: the kernel error is not measured.
  std::optional<ValueWork> value;
  // Number of landmarks on which the kernel is centred, which each row is compared with; 0 if it is
  // not centred. And whether the landmarks are compared with each other too.
  int64_t centre_landmarks = 0;
  bool centre_gram = false;
  // Rank of the factor that is solved for the trace residual; 0 if there is none or the features
  // are the projection.
  int64_t rank = 0;
};

// Work of MeasureHeldOut, and the largest memory that it holds at any time, in bytes.
Work WorkOfMeasurement(const MeasurementShape& shape);
int64_t BytesOfMeasurement(const MeasurementShape& shape, int threads);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_MEASUREMENT_COST_H_
